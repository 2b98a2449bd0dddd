/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of a process: what it said of its work (cuflight.h, NVTX), and what its memory tells (phases_infer.c). Requests
 * are phases, too. The bytes of each are followed through its events: those of a framework where one reports its blocks,
 * else those of device blocks.
 *
 * Contract: facts_build's part of struct fact_process (phases, phase_groups, requests) and of struct fact_incident
 * (phase, request). Pointers lie in the arena. phase_at works on finished facts. Times are CLOCK_REALTIME there, and
 * CLOCK_MONOTONIC in what the parts below share.
 */
#ifndef ANALYSIS_PHASES_PHASES_H
#define ANALYSIS_PHASES_PHASES_H

#include "analysis/growth/cycles.h"
#include "analysis/recording/events.h"
#include "analysis/facts/facts.h"

/* What was going on: the innermost phase of this thread, else of the process, else of its first thread, else what was
 * inferred; no marks, no requests. tid 0: no thread in particular. NULL: nothing is known. */
const struct fact_phase *phase_at(const struct facts *facts, uint32_t process, uint32_t tid, uint64_t time_ns);
/* The request that was open in this thread, else the only one in the process. NULL: none, or it cannot be told. */
const struct fact_phase *request_at(const struct facts *facts, uint32_t process, uint32_t tid, uint64_t time_ns);

/*
 * Marks for floors (growth.h): the moments at which the last open request of the program ended, so that what a request
 * takes for itself has been given back. position is an event's sequence number. Only requests that the program marked;
 * count 0: it marked none, or there was always one open. Freed by the caller. Returns how many requests ended.
 */
uint64_t phases_quiet_marks(const struct events *events, struct cycle_mark **marks, size_t *count);

/* ---- what the parts of phases*.c share ---- */

/* One phase, request or mark as it lies in the events. */
struct phase_span {
	uint64_t begin_ns, end_ns;        /* end: CUF_UNKNOWN */
	uint64_t begin_seq, end_seq;
	uint64_t id;                      /* of a range or request */
	uint32_t name;                    /* number of META PHASE; 0 lost */
	uint32_t tid, depth;
	uint8_t op;                       /* enum cuf_phase_op that began it */
	uint8_t source;                   /* enum cuf_phase_source */
	struct fact_stretch work;
};

struct phase_spans { struct phase_span *items; size_t count, room; uint64_t concurrency_max; };

/* Levels in the order of events, asked for the least and the highest since a place: each level that is hidden by a later
 * and more extreme one is dropped, so what is kept ascends, and is searched. */
struct extreme { uint64_t place; int64_t value; };
struct extremes { struct extreme *items; size_t count, room; int sign; /* 1: the highest, -1: the least */ };
void extremes_add(struct extremes *extremes, uint64_t place, int64_t value);
int64_t extremes_since(const struct extremes *extremes, uint64_t place, int64_t none);

/* The bytes that work is measured in, followed through the events. */
enum work_layer { WORK_DEVICE, WORK_FRAMEWORK };
struct work {
	enum work_layer layer;
	int64_t level;                    /* after the last event */
	uint64_t place;                   /* changes so far */
	struct extremes most, least;
};
/* Before the first event; live: the blocks at the end of the events. */
struct work_base { enum work_layer layer; int64_t level; };
struct liveset;
struct work_base work_base(const struct events *events, const struct liveset *live);
void work_begin(struct work *work, const struct work_base *base);
/* Whether the level changed, by *delta. */
bool work_follow(struct work *work, const struct cuf_event *event, int64_t *delta);
void work_end(struct work *work);

/* All spans of the events, with their bytes. */
void spans_read(struct phase_spans *spans, const struct events *events, const struct work_base *base);

/* What the memory tells. Spans have their op as PUSH; names and clauses in `found`. */
struct inferred { const char *name, *why; enum fact_basis basis; uint64_t begin_ns, end_ns, begin_seq, end_seq; };
enum { INFERRED_MAX = 8 };
struct arena;
size_t phases_infer(struct inferred found[INFERRED_MAX], const struct events *events, const struct work_base *base, const char *const *hook_names,
		    size_t hook_name_count, struct arena *arena);
/* The bytes of stretches, given by their first and last seq; at most INFERRED_MAX, ascending. */
void phases_follow(struct fact_stretch *work, const struct inferred *found, size_t count, const struct events *events, const struct work_base *base);

struct requests_source { const struct events *events; const struct work_base *base; const struct phase_spans *spans; uint64_t start_ns, start_realtime_ns; };
void requests_judge(struct fact_requests *out, const struct requests_source *source, struct arena *arena);

#endif
