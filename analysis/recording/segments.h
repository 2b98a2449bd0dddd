/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The used segments of a ring, as one lane for each thread slot in the order of writing. Both
 * merges of events.h start from lanes.
 *
 * Contract: heap memory, freed by lanes_fini; an empty ring has no lanes.
 */
#pragma once

#include "analysis/recording/reader.h"

struct lane_segment { uint64_t ticket, start_ns; uint32_t thread; uint32_t index; };
struct lane { size_t first, count; }; /* of segments[] */
struct lanes {
	struct lane_segment *segments; size_t segment_count;
	struct lane *lanes; size_t lane_count;
	/* Since when no event is missing; 0: none was overwritten. Segments are claimed in turn, so
	 * what is older than the last round of claims is there in part. */
	uint64_t complete_ns;
};

void lanes_init(struct lanes *lanes, const struct reader *reader, enum cuf_section_id ring);
void lanes_fini(struct lanes *lanes);

/* A binary heap of lane numbers, smallest key first. keys[lane] is the caller's. */
struct lane_heap { uint32_t *items; uint64_t *keys; size_t count; };
void lane_heap_init(struct lane_heap *heap, size_t lanes);
void lane_heap_fini(struct lane_heap *heap);
void lane_heap_push(struct lane_heap *heap, uint32_t lane, uint64_t key);
/* The smallest key of the lanes behind the first; UINT64_MAX: there is none. The first lane stays
 * the first up to this key. */
uint64_t lane_heap_second(const struct lane_heap *heap);
/* The key of the first lane has grown; with gone, the lane leaves the heap. */
void lane_heap_settle(struct lane_heap *heap, uint64_t key, bool gone);
