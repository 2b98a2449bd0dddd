/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of segments: holes between the blocks, which requests they could serve, and who keeps them from being given
 * back. A hole never crosses the edge of a segment: two segments that touch were two allocations, and no framework merges
 * them.
 *
 * Contract: works on the ranges of a map that are marked is_segment. Rows go to the arena, stacks carry id and process
 * alone. requested_bytes: the request that the holes are asked to serve; CUF_UNKNOWN: none, so all segments count.
 */
#ifndef ANALYSIS_DEVICE_FRAMEWORK_SEGMENTS_H
#define ANALYSIS_DEVICE_FRAMEWORK_SEGMENTS_H

#include "analysis/device/framework_map.h"
#include "analysis/device/owners.h"
#include "analysis/replay/run.h"

/* Fills segments, pins, placed_bytes, largest_hole.bytes, emptyable_bytes and empty_bytes; returns the bytes of all segments. */
uint64_t framework_segments_measure(const struct framework_map *map, uint32_t process,
				    uint64_t requested_bytes, struct arena *arena,
				    struct fact_framework *out);

/* Marks the ranges that are the framework's: it has blocks there, or they are what it keeps cached. See framework_marks.c. */
struct framework_marks;
void framework_marks_set(struct framework_marks **marks, const struct run_process *process,
			 struct framework_map *map);
void framework_marks_free(struct framework_marks *marks); /* NULL is fine */

/* The framework's own counters at a moment, as it reported them last; CUF_UNKNOWN: not in the ring. */
struct framework_report { uint64_t allocated_bytes, reserved_bytes; };
struct framework_report framework_reported(const struct events *events, unsigned device,
					   uint64_t seq);

#endif
