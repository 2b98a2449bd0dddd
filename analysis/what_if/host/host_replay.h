/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What host memory a process would have had under other allocators and their settings: its
 * recorded history of malloc and free is played on the real ones, each in a process of its own, and
 * the resident memory of those is compared.
 *
 * Contract. Texts and rows are in the arena. Sizes are bytes of malloc's resident memory: anonymous
 * pages beyond those of the process before its first operation, stacks of threads included;
 * CUF_UNKNOWN where nothing was measured. The first row is what the program had. The others are
 * sorted: least resident at the end first, those without figures last. Bounded: a player that needs
 * more memory than this machine can spare, or more than seconds_each, is ended, and its row states
 * that. progress may be NULL.
 *
 * Assumed: small blocks are written as a whole, and of large ones as much as the recorded
 * resident memory shows. Threads run one after another in slices of a millisecond or more.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_HOST_REPLAY_H
#define ANALYSIS_WHAT_IF_HOST_HOST_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include "analysis/replay/run.h"

struct host_replay_row {
	const char *typed;        /* the setting as it is typed; "" in the first row: nothing set */
	const char *allocator;    /* glibc, jemalloc ... */
	const char *why_not;      /* a clause; NULL: the figures are known */
	bool is_recorded;
	uint64_t end_bytes, peak_bytes;
	uint64_t trimmed_bytes;   /* at the end, if the program called malloc_trim(0) there */
};

struct host_replay {
	struct host_replay_row *rows;
	size_t count;
	const char *why_not;      /* nothing was played at all: a clause; NULL */
	bool estimated;           /* the recording is a sample */
	bool complete;            /* false: what was live before the oldest event, without holes */
	uint64_t live_bytes, peak_live_bytes; /* as requested by the program */
	uint64_t recorded_bytes;  /* resident at the end, as recorded; CUF_UNKNOWN */
	double touched;           /* share of large blocks that is written */
	uint64_t begun_blocks, left_out_count, step_count;
	unsigned thread_count;
};

struct host_replay_options {
	bool all;
	const char *set;          /* only this setting, next to the recorded one; NULL */
	unsigned seconds_each;    /* 0: 60 */
	uint64_t resident_most;   /* 0: what this machine can spare */
	void (*progress)(void *argument, double share);
	void *argument;
};

/* False: options->set cannot be read; *why is a clause. */
bool host_replay_run(const struct run_process *process, const struct host_replay_options *options,
		     struct arena *arena, struct host_replay *out, const char **why);

#endif
