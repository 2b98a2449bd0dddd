/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recordings contain, as rows: blocks, events, samples, call sites. Every export format reads
 * this and nothing else, so all of them have the same rows and the same sums as the report.
 *
 * Contract. Rows are handed to a function one by one; a row and its texts live until that function
 * returns, names (api, role, phase, kind) as long as the struct rows. Only rows that the filter
 * wants are seen. Times are CLOCK_REALTIME ns, sizes are bytes, unknown is CUF_UNKNOWN, 0 for tid,
 * site and seq, or NULL. Memory is bounded by the number of blocks that are live at one time, never
 * by that of events. facts and frames are borrowed. One thread.
 *
 * Which blocks: what a program allocates and frees (kind_is_block), those of frameworks, which lie
 * inside device blocks and must not be added to them, and those of the host. Address ranges, pools
 * and levels are no blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"

/* What is asked for. All zero is nothing; rows_filter_all() is everything. */
struct rows_filter {
	uint32_t kinds;   /* one bit for each enum cuf_kind */
	uint32_t device;  /* index into facts.devices; FACT_NONE: all, and memory of none */
	uint32_t pid;     /* 0: all. Several recordings have one pid after an exec */
	bool interpreter; /* stacks of Python programs have the interpreter's C functions, too */
};
struct rows_filter rows_filter_all(void);

/* Which part of the host's memory a block is of. */
enum row_part { ROW_NO_PART, ROW_MALLOC, ROW_MAP, ROW_PYTHON, ROW_PART_MAX };
extern const char *const row_part_names[ROW_PART_MAX]; /* NULL malloc map python */

struct block_row {
	uint64_t addr;
	uint64_t bytes;          /* as requested */
	/* what it stands for: itself, or all blocks that the sampler passed over for it. Sums are
	 * those of the report. */
	uint64_t weight_bytes, weight_count;
	uint64_t born_ns, died_ns;   /* born CUF_UNKNOWN: overwritten. died CUF_UNKNOWN: it lives */
	uint64_t born_seq, died_seq; /* 0: of the host, or unknown */
	uint32_t process;        /* index into facts.processes */
	uint32_t device;         /* index into facts.devices; FACT_NONE: memory of none */
	uint32_t kind;           /* enum cuf_kind */
	uint32_t tid;            /* that allocated it */
	uint32_t site;           /* number of its call site, from 1 (rows_site) */
	bool born_seen;          /* rows_blocks: its allocation is among rows_events */
	enum row_part part;
	const char *api;         /* the function that was called */
	const char *role;
	const char *phase;       /* the innermost one at its birth, in its thread */
	uint64_t request;        /* open at its birth */
	uint64_t aux;            /* enum cuf_kind: pool, handle */
};

enum event_op { EVENT_ALLOC, EVENT_FREE, EVENT_RESTORE, EVENT_FAIL, EVENT_OP_MAX };
extern const char *const event_op_names[EVENT_OP_MAX]; /* alloc free restore fail */

struct event_row {
	uint64_t seq;            /* 0: of the host, which has no numbers */
	uint64_t time_ns, addr, bytes, weight_bytes, weight_count;
	enum event_op op;
	uint32_t process, device, kind, tid;
	uint32_t site;           /* of the allocation, also on its free */
	enum row_part part;
	const char *api;
	uint32_t result;         /* FAIL: CUresult */
	uint64_t incident;       /* FAIL: its number in the recording, else 0 */
};

/* One figure of one sample of the timeline. */
struct sample_row {
	uint64_t time_ns, bytes;
	uint32_t process;
	uint32_t device;         /* FACT_NONE: of the process */
	const char *name;        /* rss_bytes, device_live_bytes ...: as in the JSON report */
};

struct rows;

/* facts and frames as made by facts_build and frames_new. */
struct rows *rows_new(const struct facts *facts, struct frames *frames,
		      const struct rows_filter *filter);
void rows_free(struct rows *rows); /* NULL is fine */

const struct facts *rows_facts(const struct rows *rows);
const struct rows_filter *rows_filter_of(const struct rows *rows);
/* Replaces the kinds of the filter. */
void rows_want_kinds(struct rows *rows, uint32_t kinds);
bool rows_want_process(const struct rows *rows, uint32_t process);
bool rows_want_device(const struct rows *rows, uint32_t device);

/* Called now and then with the number of events passed and their sum in this pass. */
void rows_on_progress(struct rows *rows,
		      void (*progress)(void *context, uint64_t done, uint64_t total),
		      void *context);

/* Blocks that are live at the moment of the facts (facts_options.at), in no order. The sums are
 * those of leaks[] and of malloc's live bytes in the report. */
void rows_live(struct rows *rows, void (*see)(void *context, const struct block_row *block),
	       void *context);
/*
 * Every block of which the recordings know: those that died, by the time of their death, then those
 * that lived at the end, process by process, device and framework before host. The birth of a block
 * whose allocation was overwritten is known to a millisecond on a device, and not for the host.
 */
void rows_blocks(struct rows *rows, void (*see)(void *context, const struct block_row *block),
		 void *context);
/* Allocations, frees and failures, by time in each process. The host's clock has milliseconds. */
void rows_events(struct rows *rows, void (*see)(void *context, const struct event_row *event),
		 void *context);
/* Known figures of the timelines, by time in each process. */
void rows_samples(struct rows *rows, void (*see)(void *context, const struct sample_row *sample),
		  void *context);

/* A range of a device's memory, with a framework's blocks in it. Stacks are of the recording. */
struct segment_row {
	uint64_t addr, bytes;
	uint32_t stack;
	bool is_split;           /* a framework splits it; false: one block of the driver */
	bool is_mapped;          /* of several mappings of one reservation */
	const struct segment_block {
		uint64_t addr, bytes;
		uint32_t stack;
	} *blocks;               /* by address */
	size_t block_count;
};

/* What a process has of a device (its own ordinal) at the moment of the facts: ranges by address,
 * then all other blocks of the driver. */
void rows_segments(struct rows *rows, uint32_t process, unsigned ordinal,
		   void (*see)(void *context, const struct segment_row *row), void *context);

/* ---- call sites ---- */

struct site_row {
	uint32_t process;
	uint32_t stack;          /* its id in the recording */
};

/* The number of a recorded stack, after those that print alike were merged; 0: unknown. */
uint32_t rows_site_of_stack(struct rows *rows, uint32_t process, uint32_t stack);
/* All stacks of a process that stand for a call site. A module may have been unloaded since: the
 * latest one at an address names it. */
void rows_call_sites(struct rows *rows, uint32_t process,
		     void (*see)(void *context, const struct fact_stack *stack), void *context);
struct site_row rows_site(const struct rows *rows, uint32_t site);
/* Innermost first; 0: unknown. Valid until the next call. */
size_t rows_site_frames(struct rows *rows, uint32_t site, const struct frame **frames);
