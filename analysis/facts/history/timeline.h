/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run over time, for pictures: what each call site held at chosen moments, the range of each
 * device, the blocks with their births and deaths, and lifetimes.
 *
 * The moments are the lowest and the highest of each of some hundred equal stretches of time, and
 * all that a reader asks for: failed requests, peaks, the end. At a moment everything is exact, as
 * far as the events are left. What does not fit is summed up, never dropped: call sites in a row
 * `rest`, and of blocks the smallest are counted in `blocks_left_out`.
 *
 * Contract: timeline_build needs the facts and their recordings; the result is freed by
 * timeline_free and borrows nothing but stacks. Its size is bounded, whatever the recordings hold.
 * Times are CLOCK_REALTIME ns, unknown is CUF_UNKNOWN, no index is FACT_NONE. Figures of sampled
 * host memory are estimates.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/replay/run.h"

/* Blocks of a framework lie inside device blocks. */
enum timeline_layer { TIMELINE_DEVICE, TIMELINE_FRAMEWORK, TIMELINE_HOST, TIMELINE_LAYERS };

enum timeline_moment_kind {
	TIMELINE_SAMPLE,
	TIMELINE_INCIDENT,
	TIMELINE_PEAK,
	TIMELINE_END,
	TIMELINE_AT, /* --at */
	TIMELINE_MOMENT_KINDS
};

struct timeline_moment {
	uint64_t time_ns;
	uint64_t seq;     /* in that process: more exact than the time; CUF_UNKNOWN: not known */
	uint32_t process; /* FACT_NONE: of no process in particular */
	enum timeline_moment_kind kind;
	uint32_t incident; /* index into facts.incidents; FACT_NONE */
	bool is_report;    /* the moment of the report: each process has its own last event */
	bool is_device;    /* the moment of a device of the report */
	/* PEAK: of this device; of no device: of the host memory of the process in focus */
	uint32_t peak_of;
};

/* What one call site allocates of one kind. */
struct timeline_site {
	uint32_t process;
	enum timeline_layer layer;
	uint8_t kind;    /* enum cuf_kind */
	uint32_t device; /* index into facts.devices; FACT_NONE: host */
	struct fact_stack stack; /* depth 0: unknown, or the rest */
	bool is_rest;    /* the sum of the smaller sites of this process, layer, kind and device */
	bool is_sampled; /* estimates */
	bool is_segment; /* its blocks are split into a framework's blocks */
	const struct fact_site *known; /* its row in the facts, with role and class; NULL: none */
	uint64_t peak_bytes; /* the highest ever; of the rest at one of the moments */
	/* over the events that are left */
	uint64_t alloc_count, alloc_bytes, free_count;
	uint64_t short_count, short_bytes; /* freed within TIMELINE_SHORT_MS */
	uint64_t least_bytes, most_bytes;  /* of one block; 0: it allocated none */
	uint64_t live_bytes, live_count;   /* at the moment of the report */
};
enum { TIMELINE_SHORT_MS = 10 };

/* What a site holds from a moment on, until its next value. Before its first one: nothing. */
struct timeline_value {
	uint32_t site, moment;
	uint64_t bytes, count;
};

struct timeline_block {
	uint64_t address, bytes;
	uint64_t born_ns, died_ns; /* died CUF_UNKNOWN: live at the end of its process */
	uint64_t pool;             /* of kind ASYNC; 0 */
	uint32_t process, device, site;
	uint8_t kind;
};

/* How many blocks, and bytes, had which age and size. Age 0: under 1 ms; age a: from 2^(a-1) to 2^a
 * ms; the last: live at the end. Size s: from 2^s to 2^(s+1) bytes. */
enum { TIMELINE_AGES = 25, TIMELINE_SIZES = 40 };
struct timeline_ages {
	uint32_t process;
	enum timeline_layer layer;
	bool is_sampled, any;
	uint64_t count[TIMELINE_AGES][TIMELINE_SIZES], bytes[TIMELINE_AGES][TIMELINE_SIZES];
};

/* The least and the most bytes of a device in each of equal stretches of time, and when. */
enum { TIMELINE_STRETCHES = 2048 };
struct timeline_range {
	uint32_t device;
	enum timeline_layer layer;
	bool any;
	uint64_t low[TIMELINE_STRETCHES], high[TIMELINE_STRETCHES];
	uint64_t low_ns[TIMELINE_STRETCHES], high_ns[TIMELINE_STRETCHES];
};

/* A stretch in which a stream was captured into a graph. */
struct timeline_capture {
	uint32_t process, tid;
	uint64_t begin_ns, end_ns; /* end CUF_UNKNOWN: open */
};

struct timeline_process {
	/* Of the device, framework and host events that are left: the time of the oldest, where
	 * older ones were overwritten; 0: none were. */
	uint64_t first_ns[TIMELINE_LAYERS];
};

struct timeline {
	uint64_t begin_ns, end_ns; /* of the whole run */
	struct timeline_moment *moments; /* by time */
	size_t moment_count;
	size_t report; /* index of the moment of the report */
	struct timeline_site *sites;
	size_t site_count;
	struct timeline_value *values; /* by site, then moment */
	size_t value_count;
	struct timeline_block *blocks; /* by birth */
	size_t block_count;
	uint64_t blocks_left_out;
	uint64_t blocks_least_bytes; /* every block of at least this size is there */
	/* and every one of at least this size that was live at the moment of the report */
	uint64_t blocks_live_least_bytes;
	bool blocks_complete;        /* all that were live then are there */
	struct timeline_ages *ages;  /* TIMELINE_LAYERS for each process */
	struct timeline_range *ranges; /* device, then framework, for each device */
	struct timeline_capture *captures;
	size_t capture_count;
	struct timeline_process *processes;
};

/* threads: as for facts_build. */
struct timeline *timeline_build(const struct facts *facts, struct run *run, unsigned threads);
void timeline_free(struct timeline *timeline); /* NULL is fine */
