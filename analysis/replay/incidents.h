/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests: the tries of one need are one ladder, and each ladder has an outcome. The rules are told in
 * analysis/facts/README.md. Contract: heap memory, freed by ladders_fini; one recording; times are CLOCK_MONOTONIC.
 */
#ifndef ANALYSIS_REPLAY_INCIDENTS_H
#define ANALYSIS_REPLAY_INCIDENTS_H

#include "analysis/replay/exit_reason.h"

enum fact_outcome {
	OUTCOME_FATAL,
	OUTCOME_RECOVERED, /* a retry served the request */
	OUTCOME_HANDLED,   /* no retry; the program went on */
	OUTCOME_UNKNOWN,
	OUTCOME_MAX
};
extern const char *const outcome_names[OUTCOME_MAX]; /* fatal recovered handled unknown */

struct ladder {
	struct cuf_incident *tries; size_t try_count, try_room; /* in order; the first ones may have been overwritten. A framework's giving up is the last */
	enum fact_outcome outcome;
	const char *why;          /* constant */
	uint64_t resolved_ns;     /* CUF_UNKNOWN */
	/* What the failed call itself had taken before it failed and gave back then: chunks of one large request. */
	uint64_t settled_seq;     /* of the last event of that; the last try's, mostly */
	uint64_t rolled_back_bytes;
};

struct ladders { struct ladder *items; size_t count; };

void ladders_init(struct ladders *ladders, const struct run_process *process,
		  const struct exit_reason *ending);
void ladders_fini(struct ladders *ladders);

/* Fills settled_seq and rolled_back_bytes; see rollback.c. */
void rollback_find(struct ladder *ladder, const struct events *events);

#endif
