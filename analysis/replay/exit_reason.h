/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process ended, as far as its recording and this machine show.
 *
 * Contract: pure, except that it reads /proc/PID of the same boot to find out whether the process
 * still runs.
 */
#ifndef ANALYSIS_REPLAY_EXIT_REASON_H
#define ANALYSIS_REPLAY_EXIT_REASON_H

#include "analysis/replay/run.h"

enum fact_end {
	END_RUNNING,
	END_EXIT,
	END_SIGNAL,
	END_KILLED,     /* no end record */
	END_OOM_KILLED, /* inferred */
	END_EXEC,
	END_MAX
};
extern const char *const end_names[END_MAX]; /* running exit signal killed oom_killed exec */

struct exit_reason {
	enum fact_end end;
	enum fact_basis basis;
	uint64_t status;          /* exit status or signal; CUF_UNKNOWN */
	uint64_t end_ns;          /* CLOCK_MONOTONIC of the end record, else of the last record */
	bool abnormal;            /* killed, a signal, or a status other than 0 */
	const char *why;          /* one clause on the evidence; constant or in the arena */
};

struct exit_reason exit_reason_of(const struct run_process *process, struct arena *arena);

#endif
