/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays the requests of a recording under every setting that is worth trying, and reports which of
 * them would have fitted.
 *
 * Contract: rows and their texts are in the arena. The first row is the recording's own setting;
 * the others are those that fit, the smallest change first, then those that do not, then those that
 * cannot be judged.
 */
#pragma once

#include "analysis/what_if/allocator_model.h"
#include "analysis/what_if/trace.h"
#include "analysis/what_if/trials.h"

/*
 * Plays a trace on an allocator model: the model gets the requests of its kinds, the driver's pages
 * get the others.
 *
 * Contract: pure except for the heap; several threads may play one trace. Sizes are bytes,
 * CUF_UNKNOWN where the trace has no such moment. A play ends at the first request that is refused
 * (as_recorded false), since the program would have ended there.
 */

struct play_options {
	const struct allocator_model *model;
	const struct model_values *values;
	uint64_t capacity_bytes; /* CUF_UNKNOWN: the trace's; 0 is a capacity */
	/* Called every 65,536 steps with the number played; false ends the play. NULL is fine. */
	bool (*progress)(void *argument, size_t steps);
	void *argument;
};

struct play_result {
	const char *why_not;     /* cannot be judged: a clause; NULL: the rest is filled */
	bool fits;               /* every request was served, the one that failed included */
	size_t refused_at;       /* step; count when it fits */
	uint64_t refused_bytes;  /* requested there; CUF_UNKNOWN when it fits */
	/* What one more request could have had then: free, and what the model would release. */
	uint64_t room_bytes;      /* after the request that failed, or at the refusal */
	uint64_t peak_room_bytes; /* where this was least */
	uint64_t peak_reserved_bytes; /* by the model */
	uint64_t unused_bytes;    /* reserved and not allocated, at the end of the play */
	uint64_t driver_calls;
	uint64_t driver_peak_bytes;
};

struct play_result play_trace(const struct trace *trace, const struct play_options *options);

struct what_if_row {
	struct trial trial;
	struct play_result result;
	size_t order; /* in the list of trials */
};

struct what_if {
	const struct trace *trace; /* borrowed */
	struct what_if_row *rows;
	size_t count;
	/* The replay of the recorded setting ends as the program did: it fits, or the same request
	 * is refused. Otherwise why not, a clause; NULL: it does. */
	const char *unlike;
};

struct what_if_options {
	bool all;              /* rows that are seldom of use, too */
	const char *set;       /* NAME=VALUE: this one and the recorded one; NULL */
	unsigned threads;      /* 0: as many as there are CPUs */
	/* Called now and then with the share that is done, from one thread; NULL. */
	void (*progress)(void *argument, double share);
	void *argument;
};

/* False: options->set cannot be read; *why is a clause. */
bool what_if_run(const struct trace *trace, const struct what_if_options *options,
		 struct arena *arena, struct what_if *out, const char **why);
