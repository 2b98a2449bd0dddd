/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process ended, as far as its recording and this machine show.
 *
 * Contract: pure, except that it looks whether the process still runs (process_life.h) and reads
 * the files of its control group (group_kills.h).
 */
#pragma once

#include "analysis/replay/run.h"

enum fact_end {
	END_RUNNING,
	END_EXIT,
	END_SIGNAL,
	END_KILLED,     /* no end record */
	END_OOM_KILLED, /* inferred */
	END_EXEC,
	END_UNKNOWN,    /* no end record, and it may still run */
	END_MAX
};

/* What it holds is held now, as far as anybody knows. */
static inline bool end_may_run(enum fact_end end)
{
	return end == END_RUNNING || end == END_UNKNOWN;
}

/* Whether no more than a twentieth of a control group's limit was left. Source: reasoning. The
 * recorder samples with each rise by a sixteenth, so the last one before a kill is about there. */
static inline bool limit_is_reached(uint64_t bytes, uint64_t limit)
{
	return bytes >= limit - limit / 20;
}

struct exit_reason {
	enum fact_end end;
	enum fact_basis basis;
	uint64_t status;          /* exit status or signal; CUF_UNKNOWN */
	uint64_t end_ns;          /* CLOCK_MONOTONIC of the end record, else of the last record */
	bool is_copied;           /* END_RUNNING: it ran at end_ns, when it was copied */
	bool abnormal;            /* killed, a signal, or a status other than 0 */
	uint64_t untouched_bytes; /* without an end record: requested at last, and not yet resident
				   * at the last sample */
	const char *why;          /* one clause on the evidence; constant or in the arena */
};

/* Live host memory that was requested at last, before the recording ends. */
struct late_blocks {
	uint64_t bytes;              /* in the last second */
	uint64_t since_sample_bytes; /* of those: after the last sample */
	/* of those: of blocks that no allocator has free, when the last sample was taken or after;
	 * a sample is due when such a block was made, and then none of it is resident */
	uint64_t fresh_bytes;
};

/* Where the last second begins, CLOCK_MONOTONIC, and when the last sample was taken; 0: none. */
uint64_t exit_reason_late_ns(const struct run_process *process);
uint64_t exit_reason_sample_ns(const struct run_process *process);
struct exit_reason exit_reason_of(const struct run_process *process, const struct late_blocks *late,
				  struct arena *arena);
