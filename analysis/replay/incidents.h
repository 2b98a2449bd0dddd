/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests. The attempts of one need are one ladder, and each ladder has an outcome. The
 * rules, in short:
 *
 * - Retries in one thread within two seconds belong to one ladder, also when their sizes shrink. A
 *   framework that gives up takes all failures of the driver since its last block with it.
 * - A success of that size in the same thread makes the ladder recovered; a later one, or a program
 *   that keeps allocating, makes it handled.
 * - Otherwise the end of the process decides: an abnormal end within five seconds makes it fatal.
 *   On the host it may be later, where nothing of note was requested in between.
 *
 * analysis/facts/README.md, "Incidents", has them in full.
 *
 * Contract: heap memory, freed by ladders_fini; one recording; times are CLOCK_MONOTONIC.
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
	/* in order; the first ones may have been overwritten. A framework that gives up is the last
	 * one */
	struct cuf_incident *tries; size_t try_count, try_room;
	enum fact_outcome outcome;
	const char *why;          /* constant */
	uint64_t resolved_ns;     /* CUF_UNKNOWN */
	/* What the failed call had allocated itself and then freed: chunks of one large request. */
	uint64_t settled_seq;     /* of the last such free; mostly that of the last attempt */
	uint64_t rolled_back_bytes;
};

struct ladders { struct ladder *items; size_t count; };

void ladders_init(struct ladders *ladders, const struct run_process *process,
		  const struct exit_reason *ending);
void ladders_fini(struct ladders *ladders);

/* Fills settled_seq and rolled_back_bytes; see rollback.c. */
void rollback_find(struct ladder *ladder, const struct events *events);

#endif
