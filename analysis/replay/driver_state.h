/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver reported about a device as of a moment: free memory, and what its pools had
 * reserved. Reports are rare, so each figure has its age: `fresh` when nothing happened since that
 * changes it. Of a report before the moment and one soon after it counts the one to which less
 * changed.
 *
 * Contract: unknown is CUF_UNKNOWN. device is the ordinal in that process; seq CUF_UNKNOWN: now.
 * Times are CLOCK_MONOTONIC.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/sweep.h"

#define DRIVER_STATE_POOLS_MAX 64

/* What the driver reported of one memory pool. */
struct pool_level {
	uint64_t pool; /* handle; 0: the graph pool */
	uint64_t reserved_bytes, used_bytes, threshold_bytes;
	bool fresh; /* nothing changed the pool since */
};

struct driver_state {
	uint64_t free_bytes, total_bytes;
	uint64_t free_ns; /* when the driver reported it; CUF_UNKNOWN */
	enum fact_basis free_basis;
	size_t pool_count; struct pool_level pools[DRIVER_STATE_POOLS_MAX];
};

/* What the driver had reported at the moments that will be asked for and at several hundred events,
 * noted in one sweep: a question about another moment starts at the nearest of them. What follows
 * those moments is kept for events_near. seqs: ascending, borrowed until the end of the sweep.
 * Freed by driver_history_free. */
struct driver_history;
struct driver_history *driver_history_new(struct events *events, const uint64_t *seqs,
					  size_t count);
struct sweep_consumer driver_history_consumer(struct driver_history *history);
void driver_history_free(struct driver_history *history); /* NULL is fine */

enum driver_word {
	DRIVER_NEAREST,
	DRIVER_AT_END,  /* the moment is that of the end record: what was read there counts */
	DRIVER_BEFORE,  /* no later report is looked for: driver_state_overlay follows */
};
/* After the sweep. */
void driver_state_at(const struct driver_history *history, unsigned device, uint64_t seq,
		     enum driver_word word, struct driver_state *out);
/* Replaces figures by those that an incident has. */
void driver_state_overlay(const struct cuf_incident *incident, struct driver_state *state);
