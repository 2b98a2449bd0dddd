/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures segments: holes between blocks, which requests they could serve, and which call sites
 * keep them from being freed. A hole never crosses the edge of a segment: adjacent segments were
 * two allocations, and no framework merges them.
 *
 * Contract: works on the ranges of a map that are marked is_segment. Rows go to the arena; stacks
 * have id and process only. requested_bytes: the request that the holes should serve; CUF_UNKNOWN:
 * none, so all segments count.
 */
#pragma once

#include "analysis/measure/framework_map.h"
#include "analysis/measure/owners.h"
#include "analysis/replay/run.h"

/* Fills segments, pins, placed_bytes, largest_hole.bytes, emptyable_bytes and empty_bytes. Returns
 * the bytes of all segments. */
uint64_t framework_segments_measure(const struct framework_map *map, uint32_t process,
				    uint64_t requested_bytes, struct arena *arena,
				    struct fact_framework *out);

/* Marks the ranges that are segments: those with blocks, and those that the framework caches. See
 * framework_marks.c. */
struct framework_marks;
void framework_marks_set(struct framework_marks **marks, const struct run_process *process,
			 struct framework_map *map);
void framework_marks_free(struct framework_marks *marks); /* NULL is fine */

/* The counters of the framework at a moment, as it last reported them; CUF_UNKNOWN: not in the
 * ring. */
struct framework_report {
	uint64_t allocated_bytes;
	uint64_t reserved_bytes;
};
struct framework_report framework_reported(const struct events *events, unsigned device,
					   uint64_t seq);
