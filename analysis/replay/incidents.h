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
#pragma once

#include "analysis/replay/exit_reason.h"

enum fact_outcome {
	OUTCOME_FATAL,
	OUTCOME_RECOVERED, /* a retry served the request */
	OUTCOME_HANDLED,   /* no retry; the program went on */
	OUTCOME_UNKNOWN,
	OUTCOME_MAX
};

/*
 * ---- the failed requests, and what came before and after each ----
 *
 * They are heard while the events are put in order (events_new): their table is there before.
 * A request without a later event has nothing after it. Of a recording that is being written,
 * later events than its moment do not count. Heap memory, freed by failures_free.
 */

#define FAILURE_LADDER_NS 2000000000ull /* a retry comes within two seconds */
/* a process that is killed this soon after a failure was killed by it */
#define FAILURE_LAST_NS 5000000000ull
#define FAILURE_START_OVER_NS 11000000000ull /* XLA waits ten seconds, then starts over */
/* a framework frees its cache, synchronizes and retries before it gives up */
#define FAILURE_NEED_NS 10000000000ull
enum { FAILURE_WENT_ON = 64 }; /* after this many successes the program went on */

/*
 * What followed a failure, on its device. While one thread brings the process down (an exception
 * unwinds, a pool is joined), other threads keep working. So their successes count only when the
 * process has lived on for longer than that takes. The retry ladders of PyTorch, CuPy, RMM, ggml
 * and XLA run in the thread that asked first.
 */
struct aftermath {
	/* the same thread was served within the time of the ladder; 0: not */
	uint64_t served_seq, served_ns;
	uint64_t as_large;  /* lasting successes of at least the requested size */
	uint64_t lasting;   /* successes of the same thread, and of others after LAST_NS */
	uint64_t successes; /* of any thread */
	bool done;
};

struct failure {
	struct cuf_incident incident;
	struct aftermath after[2]; /* [1]: it is the last of a ladder that shrank */
	/* the first block after it that serves its need, of the same thread; 0: none soon */
	uint64_t served_seq;
	/* a framework's: the last block before it, of the same thread; 0: none soon before */
	uint64_t block_seq;
	bool is_looked_for; /* an event close to it was heard */
};

struct failures {
	struct failure *items; size_t count; /* by number */
	uint32_t *by_seq;
	uint32_t *active; size_t active_count; /* those that more is to be known of */
	size_t next; /* in by_seq: the first one that no event followed so far */
	struct cuf_event before; /* the last event of the framework's ring; seq 0: none */
	uint64_t end_seq, until_seq;
};

/* NULL: none failed. */
struct failures *failures_new(const struct reader *reader);
void failures_free(struct failures *failures); /* NULL is fine */
struct events_listener failures_listener(struct failures *failures);

/* ---- ladders ---- */

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

static inline const struct cuf_incident *ladder_last(const struct ladder *ladder)
{
	return &ladder->tries[ladder->try_count - 1];
}

struct ladders { struct ladder *items; size_t count; };

void ladders_init(struct ladders *ladders, const struct run_process *process,
		  const struct exit_reason *ending);
void ladders_fini(struct ladders *ladders);

/* Fills settled_seq and rolled_back_bytes; see rollback.c. */
void rollback_find(struct ladder *ladder, const struct events *events);
