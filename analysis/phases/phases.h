/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of a process: what it said of its work (cuflight.h, NVTX), and what its memory tells (phases_infer.c). Requests
 * are phases, too. The bytes of each are followed through its events: those of a framework where one reports its blocks,
 * else those of device blocks.
 *
 * Contract: pointers are into the arena. Times are CLOCK_REALTIME there, and
 * CLOCK_MONOTONIC in what the parts below share.
 */
#ifndef ANALYSIS_PHASES_PHASES_H
#define ANALYSIS_PHASES_PHASES_H

#include "analysis/growth/cycles.h"
#include "analysis/recording/events.h"
#include "analysis/recording/fact_types.h"

/* Bytes over a stretch of time: of device blocks, or of what a framework has allocated in its
 * segments where one reports that. All are CUF_UNKNOWN where the events are gone. */
struct fact_stretch {
	uint64_t start_bytes, floor_bytes, peak_bytes, end_bytes;
};

/* Units of the program's work: marked (cuflight.h), or the rises and falls of its memory. */
struct fact_requests {
	uint64_t count;             /* finished ones; 0: none were seen */
	uint64_t open;
	const char *name;           /* of most of them; "" inferred */
	enum fact_basis basis;      /* observed: marked; inferred: from rises and falls */
	const char *why;            /* one clause */
	uint64_t concurrency_max;   /* open at the same time; CUF_UNKNOWN */
	uint64_t median_peak_bytes; /* peak over what was live at the begin; CUF_UNKNOWN */
	uint64_t largest_peak_bytes;
	uint64_t largest_id;        /* of the request with that peak; CUF_UNKNOWN */
	uint64_t largest_ns;        /* when that began */
	double floor_slope_bytes;   /* what remains after each; NAN: too few */
	double floor_low_bytes;     /* its 95 % interval */
	double floor_high_bytes;
	double per_s;               /* NAN */
};

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
void spans_read(struct phase_spans *spans, const struct events *events,
		const struct work_base *base);

/* What the memory tells. Spans have their op as PUSH; names and clauses in `found`. */
struct inferred {
	const char *name, *why;
	enum fact_basis basis;
	uint64_t begin_ns, end_ns, begin_seq, end_seq;
};
enum { INFERRED_MAX = 8 };
struct arena;
size_t phases_infer(struct inferred found[INFERRED_MAX], const struct events *events,
		    const struct work_base *base, const char *const *hook_names,
		    size_t hook_name_count, struct arena *arena);
/* The bytes of stretches, given by their first and last seq; at most INFERRED_MAX, ascending. */
void phases_follow(struct fact_stretch *work, const struct inferred *found, size_t count,
		   const struct events *events, const struct work_base *base);

struct requests_source {
	const struct events *events;
	const struct work_base *base;
	const struct phase_spans *spans;
	uint64_t start_ns, start_realtime_ns;
};
void requests_judge(struct fact_requests *out, const struct requests_source *source,
		    struct arena *arena);

#endif
