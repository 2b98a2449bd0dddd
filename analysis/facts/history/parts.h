/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of timeline_build, in their order. Contract: as in timeline.h; each fills its part of
 * the timeline. Only timeline.c calls them.
 */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/facts/history/timeline.h"
#include "analysis/replay/liveset.h"

/*
 * Blocks with their births and deaths, found while events are undone. There may be millions: only
 * blocks of at least a size are followed, chosen so that the table keeps its limit, and all that
 * live at the moment of the report.
 *
 * Contract: heap memory, freed by spans_fini. Times are CLOCK_MONOTONIC. `row` is the caller's
 * number of the call site.
 */

/* How many blocks have which size, in quarters of an octave. */
enum { SIZE_CLASSES = 256 };
struct sizes { uint64_t count[SIZE_CLASSES]; };
void sizes_add(struct sizes *sizes, uint64_t bytes);
/* All blocks of at least `all_bytes` are at most as many as there is room for; those of at least
 * `some_bytes`, the class of sizes below, no longer. */
struct size_limit { uint64_t all_bytes, some_bytes; };
struct size_limit sizes_limit(const struct sizes *sizes, uint64_t most);

struct span_found {
	uint64_t address, bytes, born_ns, died_ns, aux; /* died CUF_UNKNOWN: never */
	uint32_t row;
	uint8_t kind, device;
};

struct spans {
	/* time_ns: estimated birth; seq: death; tid: row; maps: a free of it failed */
	struct liveset open;
	struct span_found *items;
	size_t count, room;
	struct size_limit ever; /* smaller ones are followed only while `tail` */
	struct size_limit live; /* and of those, not the ones below this */
	uint64_t left_out;
	size_t small_count, some_count; /* that are followed by `live`, and by ever.some_bytes */
	size_t most;           /* of each */
	bool tail;             /* after the moment of the report: everything is followed */
	bool overflowed;       /* small blocks did not fit */
};

/* live: of the blocks that are followed because they live at the moment of the report. */
void spans_init(struct spans *spans, struct size_limit ever, struct size_limit live, size_t most);
void spans_fini(struct spans *spans);
/* Kinds that have an address of their own. */
bool spans_has(unsigned kind);

/* A block of the ledger: live at the end. */
void spans_live(struct spans *spans, const struct cuf_block *block, uint32_t row);
/* Undoes an event of a block. */
void spans_undo(struct spans *spans, const struct cuf_event *event, uint32_t row);
/* The moment of the report is passed: from here on small blocks are not opened. */
void spans_pass_report(struct spans *spans);
/* The oldest event is undone: what is open was born before it. */
void spans_close(struct spans *spans);

/*
 * What the call sites of one process held at each moment: a row for each, with its changes.
 *
 * A row is changed by levels_add. A moment that is passed is noted by levels_pass, which looks at
 * the rows that changed since the last one. Walks go backward (device) or forward (host).
 *
 * Contract: heap memory, freed by levels_fini. Entries hold from their moment on; they are in no
 * order. Pointers to rows are valid until the next levels_row.
 */

struct level_row {
	uint32_t stack;
	uint8_t kind, device; /* the ordinal of the process */
	bool is_dirty;
	bool is_drawn; /* has blocks that a sample stands for */
	int64_t bytes, count;           /* where the walk is */
	int64_t kept_bytes, kept_count; /* at the moment that was passed last */
	int64_t peak_bytes, report_bytes, report_count;
	uint64_t alloc_count, alloc_bytes, free_count, short_count, short_bytes;
	uint64_t least_bytes, most_bytes;
	uint64_t last_ns; /* CLOCK_MONOTONIC: when its stack was in use; 0 unknown */
};

struct level_entry {
	uint32_t row, moment;
	int64_t bytes, count;
};

struct levels {
	struct level_row *rows;
	size_t count, room;
	struct hash_index index;
	uint32_t *dirty;
	size_t dirty_count, dirty_room;
	struct level_entry *entries;
	size_t entry_count, entry_room;
};

void levels_init(struct levels *levels);
void levels_fini(struct levels *levels);
/* The index of the row; a new one is empty. */
uint32_t levels_row(struct levels *levels, unsigned kind, unsigned device, uint32_t stack);
void levels_add(struct levels *levels, uint32_t row, int64_t bytes, int64_t count);

/* Forward: the rows that changed get an entry at this moment. */
void levels_pass_forward(struct levels *levels, uint32_t moment);
/* Backward: this moment lies before `later`. Rows that differ get an entry at `later`; FACT_NONE:
 * no moment was passed yet. */
void levels_pass_back(struct levels *levels, uint32_t later);
/* Backward, at the end: what rows have was there at the first moment, too. */
void levels_close(struct levels *levels);

/* At the moment `report` (FACT_NONE: none) rows have what was noted for it, and where is_over
 * holds, nothing. Entries are sorted by row, then moment, before and after. */
void levels_settle(struct levels *levels, const bool *is_over, uint32_t report, uint32_t moments);

/* A table of lifetimes by size. Contract: pure. Sums saturate far beyond any recording. */

/* The row of an age. */
static inline unsigned ages_of_ms(uint64_t ms)
{
	unsigned row = ms ? 64u - (unsigned)__builtin_clzll(ms) : 0;
	return row < TIMELINE_AGES - 1 ? row : TIMELINE_AGES - 2;
}

/* Blocks of this size; with a weight, each stands for so many. */
static inline void ages_add(struct timeline_ages *ages, unsigned row, uint64_t bytes,
			    uint64_t weight)
{
	unsigned size = bytes ? 63u - (unsigned)__builtin_clzll(bytes) : 0;
	uint64_t sum;

	if (size >= TIMELINE_SIZES)
		size = TIMELINE_SIZES - 1;
	if (__builtin_mul_overflow(bytes, weight, &sum) || sum > (uint64_t)1 << 50)
		sum = (uint64_t)1 << 50;
	ages->any = true;
	ages->count[row][size] += weight;
	ages->bytes[row][size] += sum;
}

/* What is measured of one process. */
struct timeline_work {
	const struct facts *facts;
	struct run_process *recorded;
	const struct fact_process *process;
	struct timeline *timeline;
	uint32_t number;        /* of the process */
	struct levels device;   /* and framework */
	struct levels host;
	struct sizes sizes, live_sizes; /* of its blocks, ever and at its end: for spans */
	struct spans spans;
	struct timeline_capture *captures;
	size_t capture_count, capture_room;
	bool host_is_sampled;
};

/* Clocks: an event's CLOCK_MONOTONIC to CLOCK_REALTIME. Hostile times wrap, and are cut later. */
static inline uint64_t work_realtime(const struct timeline_work *work, uint64_t monotonic_ns)
{
	const struct cuf_header *header = &work->recorded->reader->header;
	return monotonic_ns - header->start_ns + header->start_realtime_ns;
}

/* The ranges of all devices, and the sizes of all blocks: one walk over all processes together. */
void timeline_ranges(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts, const struct run *run);
/* Chooses the moments. */
void timeline_moments(struct timeline *timeline, const struct facts *facts, const struct run *run);
/* Device and framework events of one process. */
void timeline_walk_device(struct timeline_work *work);
/* Host events of one process. */
void timeline_walk_host(struct timeline_work *work);
/* Sites, values and blocks of all processes. */
void timeline_gather(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts);
/* Marks the sites that allocate a framework's segments. */
void timeline_segments(struct timeline *timeline);

/* Whether an event, or a moment of a process, is not later than a moment of the list. */
bool moment_includes(const struct timeline_work *work, const struct timeline_moment *moment,
		     uint64_t seq, uint64_t realtime_ns);
