/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of timeline_build, in their order. Contract: as in timeline.h; each fills its part of
 * the timeline. Only timeline.c calls them.
 */
#pragma once

#include "analysis/facts/timeline/levels.h"
#include "analysis/facts/timeline/spans.h"
#include "analysis/facts/timeline/timeline.h"

/* What is measured of one process. */
struct timeline_work {
	const struct facts *facts;
	struct run_process *recorded;
	const struct fact_process *process;
	struct timeline *timeline;
	uint32_t number;        /* of the process */
	struct levels device;   /* and framework */
	struct levels host;
	struct sizes sizes, live_sizes; /* of its blocks, ever and at its end: for spans */
	struct spans spans;
	struct timeline_capture *captures;
	size_t capture_count, capture_room;
	bool host_is_sampled;
};

/* Clocks: an event's CLOCK_MONOTONIC to CLOCK_REALTIME. Hostile times wrap, and are cut later. */
static inline uint64_t work_realtime(const struct timeline_work *work, uint64_t monotonic_ns)
{
	const struct cuf_header *header = &work->recorded->reader->header;
	return monotonic_ns - header->start_ns + header->start_realtime_ns;
}

/* The ranges of all devices, and the sizes of all blocks: one walk over all processes together. */
void timeline_ranges(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts, const struct run *run);
/* Chooses the moments. */
void timeline_moments(struct timeline *timeline, const struct facts *facts, const struct run *run);
/* Device and framework events of one process. */
void timeline_walk_device(struct timeline_work *work);
/* Host events of one process. */
void timeline_walk_host(struct timeline_work *work);
/* Sites, values and blocks of all processes. */
void timeline_gather(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts);
/* Marks the sites that allocate a framework's segments. */
void timeline_segments(struct timeline *timeline);

/* Whether an event, or a moment of a process, is not later than a moment of the list. */
bool moment_includes(const struct timeline_work *work, const struct timeline_moment *moment,
		     uint64_t seq, uint64_t realtime_ns);
