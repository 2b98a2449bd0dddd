/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver said of a device, as of a moment: free memory and what its pools had reserved. The driver is asked
 * rarely, so each figure says how old it is: fresh when nothing that changes it happened since.
 *
 * Contract: unknown is CUF_UNKNOWN. device is the ordinal in that process; seq CUF_UNKNOWN: now. Times are CLOCK_MONOTONIC.
 */
#ifndef ANALYSIS_REPLAY_DRIVER_STATE_H
#define ANALYSIS_REPLAY_DRIVER_STATE_H

#include "analysis/recording/events.h"
#include "analysis/recording/fact_types.h"

#define DRIVER_STATE_POOLS_MAX 64

/* What the driver reported of one memory pool. */
struct pool_level {
	uint64_t pool; /* handle; 0: the graph pool */
	uint64_t reserved_bytes, used_bytes, threshold_bytes;
	bool fresh; /* nothing changed the pool since */
};

struct driver_state {
	uint64_t free_bytes, total_bytes;
	enum fact_basis free_basis;
	struct pool_level pools[DRIVER_STATE_POOLS_MAX]; size_t pool_count;
};

/* at_end: the moment is the end record's; what was asked at the end counts. */
void driver_state_at(const struct reader *reader, const struct events *events, unsigned device,
		     uint64_t seq, bool at_end, struct driver_state *out);
/* Puts what an incident knows over it. */
void driver_state_overlay(const struct cuf_incident *incident, struct driver_state *levels);

/* Seq of the last event at or before a time, of both rings; 0 when all that are left are later. */
uint64_t seq_at_time(const struct events *events, uint64_t time_ns);

#endif
