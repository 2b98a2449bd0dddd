/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of a process: those that it marked (cuflight.h, NVTX) and those inferred from its memory
 * (phases_infer.c). Requests are phases, too. The live bytes of each are followed through its
 * events: those of a framework where one reports its blocks, else those of device blocks.
 * analysis/facts/README.md, "Phases and requests", has the rules.
 *
 * Contract: pointers are into the arena. Times are CLOCK_REALTIME in facts and CLOCK_MONOTONIC in
 * everything else here.
 */
#pragma once

#include "analysis/growth/cycles.h"
#include "analysis/recording/events.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/sweep.h"

/* Bytes over a stretch of time: of device blocks, or of what a framework has allocated in its
 * segments where one reports that. All are CUF_UNKNOWN where the events are gone. */
struct fact_stretch {
	uint64_t start_bytes; /* before the first event of it */
	uint64_t floor_bytes;
	uint64_t peak_bytes;
	uint64_t end_bytes;
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

/* ---- what the parts of phases*.c share ---- */

/* One phase, request or mark, as the events have it. */
struct phase_span {
	/* CUF_UNKNOWN as an end: it was open at the end of the events */
	uint64_t begin_ns, end_ns;
	uint64_t begin_seq, end_seq;
	uint64_t id;    /* of a range or request */
	uint32_t name;  /* number of META PHASE; 0 lost */
	uint32_t tid;   /* 0: any thread may end it */
	uint32_t depth; /* of pushed ranges of one thread, from 0 */
	uint8_t op;     /* enum cuf_phase_op that began it */
	uint8_t source; /* enum cuf_phase_source */
	struct fact_stretch work;
};

/* In order of their begin. concurrency_max: requests open at the same time. */
struct phase_spans {
	struct phase_span *items;
	size_t count, room;
	uint64_t concurrency_max;
};

/* The minimum or maximum since any position of a series of levels. A level that is hidden by a
 * later and more extreme one is dropped, so the rest is sorted and can be searched. */
struct extreme {
	uint64_t place;
	int64_t value;
};
struct extremes {
	struct extreme *items;
	size_t count, room;
	int sign; /* 1: maximum, -1: minimum */
};
void extremes_add(struct extremes *extremes, uint64_t place, int64_t value);
/* The extreme at or after a position; none: what to return if nothing was added since. */
int64_t extremes_since(const struct extremes *extremes, uint64_t place, int64_t none);

/* The bytes in which work is measured, followed through the events. */
enum work_layer { WORK_DEVICE, WORK_FRAMEWORK, WORK_LAYERS };
/* What an event adds to the level of a layer; 0: nothing. */
int64_t work_delta(enum work_layer layer, const struct cuf_event *event);
struct work {
	enum work_layer layer;
	int64_t level;  /* after the last event */
	uint64_t place; /* changes so far */
	struct extremes most, least;
};
/* Before the first event; live: the sums at the end of the events. */
struct work_base {
	enum work_layer layer;
	int64_t level;
};
/* What the events changed, found by a sweep. */
struct work_nets {
	int64_t bytes[WORK_LAYERS];
	bool has_framework;
};
struct sweep_consumer work_nets_consumer(struct work_nets *nets);
struct live_sums;
/*
 * Chooses the layer and computes its level before the first event: what is live at the end, minus
 * all changes. A ring that lost events would make that negative; then it is 0.
 */
struct work_base work_base(const struct work_nets *nets, const struct live_sums *live);
/* Starts at the level of base. work_end frees the extremes. */
void work_begin(struct work *work, const struct work_base *base);
/* Whether the level changed, by *delta. */
bool work_follow(struct work *work, const struct cuf_event *event, int64_t *delta);
void work_end(struct work *work);

/* All spans of the events, with their bytes: by a sweep of which they are a consumer, or by one of
 * their own. spans_end fills what is open and ends the reading. */
struct spans_reading;
struct spans_reading *spans_begin(struct phase_spans *spans, const struct events *events,
				  const struct work_base *base, struct sweep_consumer *consumer);
void spans_end(struct spans_reading *reading);
void spans_read(struct phase_spans *spans, const struct events *events,
		const struct work_base *base);

/* Phases inferred from memory; names and clauses are in `found`. */
struct inferred {
	const char *name;
	const char *why; /* one clause: the evidence */
	enum fact_basis basis;
	uint64_t begin_ns, end_ns, begin_seq, end_seq;
};
enum { INFERRED_MAX = 8 };
struct arena;
/* Two sweeps, each with a consumer: look_begin, a sweep, look_start, a sweep, look_end. hook_names:
 * by the hook's number in the events; the names decide who queried free memory. look_end fills
 * found in order of begin_seq, returns how many, and frees the look. */
struct look;
struct look *look_begin(const struct events *events, const char *const *hook_names,
			size_t hook_name_count, struct sweep_consumer *consumer);
void look_start(struct look *look, const struct work_base *base, struct arena *arena,
		struct sweep_consumer *consumer);
size_t look_end(struct look *look, struct inferred found[INFERRED_MAX]);

/* The level in blocks of events, taken in the second sweep. With it, the bytes of stretches that
 * are found later need no sweep of their own: only the blocks at their ends are read again. */
struct outline;
struct outline *outline_begin(const struct work_base *base, const struct events *events,
			      struct sweep_consumer *consumer);
/* The bytes from one event to another. All 0: no event is as late as begin_seq. */
struct fact_stretch outline_stretch(const struct outline *outline, const struct events *events,
				    uint64_t begin_seq, uint64_t end_seq);
void outline_end(struct outline *outline);

/* Units of work, in the same two sweeps: units_begin, a sweep, units_measure, a sweep,
 * requests_judge, units_end. The first one fills *quiet, which whoever comes later in the row
 * may read. Its items are the caller's to free. */
struct units_reading;
struct units_reading *units_begin(struct quiet_marks *quiet, struct sweep_consumer *consumer);
void units_measure(struct units_reading *reading, const struct work_base *base,
		   struct sweep_consumer *consumer);
void units_end(struct units_reading *reading);

/* What requests_judge reads. start_*: the begin of the recording, on both clocks. */
struct requests_source {
	const struct units_reading *units;
	const struct phase_spans *spans;
	uint64_t start_ns, start_realtime_ns;
};
/* Marked requests if there are any, else cycles of memory. Without both, count is 0. */
void requests_judge(struct fact_requests *out, const struct requests_source *source,
		    struct arena *arena);
