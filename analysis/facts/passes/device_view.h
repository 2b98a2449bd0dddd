/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device at one moment: who held it, what the driver reported, the largest free blocks. The
 * report's devices and its incidents are both made from such views.
 *
 * Contract: after build_groups and build_incidents. Rows are in the arena of the run.
 */
#pragma once

#include "analysis/facts/passes/passes.h"
#include "analysis/facts/passes/roles.h"

struct device_view {
	uint32_t process; /* whose rows are itemised */
	struct usage focus;
	struct driver_state levels;
	struct fact_owner_row *owners;
	size_t owner_count;
	uint64_t total_bytes;
	uint64_t rounded_bytes; /* of the itemised process; only where a request failed */
	struct fact_layer layers[LAYER_MAX]; /* LAYER_HOST included */
	bool exact; /* false: events that undo the time since then were overwritten */
};

/* incident: the record of the moment, with what is known of it; NULL. */
void device_view_at(const struct facts *facts, struct block_memory *memory, uint32_t device,
		    const struct fact_moment *moment, const struct cuf_incident *incident,
		    struct device_view *view);
/* The recorder's record of an incident's moment, with the free memory that is known of it. False:
 * it was overwritten. */
bool incident_at(const struct facts *facts, const struct fact_incident *incident,
		 struct cuf_incident *out);
