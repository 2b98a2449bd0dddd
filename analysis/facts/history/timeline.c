/* SPDX-License-Identifier: Apache-2.0 */
/* The steps in order: ranges, moments, then each process by itself, then all together. */
#include "analysis/facts/history/timeline.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/totals.h"
#include "analysis/facts/history/parts.h"

/* Device and host events of a process have nothing in common: two pieces. */
static void walk(void *context, size_t i)
{
	struct timeline_work *work = (struct timeline_work *)context + i / 2;

	if (i % 2)
		timeline_walk_device(work);
	else
		timeline_walk_host(work);
}

static void span_of(struct timeline *timeline, const struct facts *facts)
{
	timeline->begin_ns = facts->processes[0].start_ns;
	timeline->end_ns = timeline->begin_ns + facts_duration_ns(facts);
	if (timeline->end_ns <= timeline->begin_ns)
		timeline->end_ns = timeline->begin_ns + 1;
}

static void take_captures(struct timeline_work *works, struct timeline *timeline, size_t processes)
{
	size_t room = 0;

	for (size_t p = 0; p < processes; p++) {
		for (size_t i = works[p].capture_count; i--;) { /* by begin again */
			xalloc_grow(&timeline->captures, timeline->capture_count, &room,
				    sizeof *timeline->captures);
			timeline->captures[timeline->capture_count++] = works[p].captures[i];
		}
		free(works[p].captures);
	}
}

/* Live sets that the facts were made of: the walks need their room. */
static void free_live_sets(struct run *run)
{
	for (size_t p = 0; p < run->count; p++) {
		liveset_fini(&run->processes[p].live);
		run->processes[p].live_valid = false;
	}
}

struct timeline *timeline_build(const struct facts *facts, struct run *run, unsigned threads)
{
	struct timeline *timeline = xalloc_zeroed(1, sizeof *timeline);
	size_t count = facts->process_count;
	struct timeline_work *works = xalloc_zeroed(count, sizeof *works);

	free_live_sets(run);
	span_of(timeline, facts);
	timeline->processes = xalloc_zeroed(count, sizeof *timeline->processes);
	timeline->ages = xalloc_zeroed(count * TIMELINE_LAYERS, sizeof *timeline->ages);
	for (size_t p = 0; p < count; p++) {
		works[p] = (struct timeline_work){ .facts = facts,
						   .recorded = &run->processes[p],
						   .process = &facts->processes[p],
						   .timeline = timeline,
						   .number = (uint32_t)p };
		for (unsigned layer = 0; layer < TIMELINE_LAYERS; layer++) {
			timeline->ages[p * TIMELINE_LAYERS + layer].process = (uint32_t)p;
			timeline->ages[p * TIMELINE_LAYERS + layer].layer = layer;
		}
	}
	timeline_ranges(works, timeline, facts, run);
	timeline_moments(timeline, facts, run);
	parallel_each(2 * count, threads, walk, works);
	timeline_gather(works, timeline, facts);
	timeline_segments(timeline);
	take_captures(works, timeline, count);
	for (size_t p = 0; p < count; p++) {
		levels_fini(&works[p].device);
		levels_fini(&works[p].host);
		spans_fini(&works[p].spans);
	}
	free(works);
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	free(timeline->moments);
	free(timeline->sites);
	free(timeline->values);
	free(timeline->blocks);
	free(timeline->ages);
	free(timeline->ranges);
	free(timeline->captures);
	free(timeline->processes);
	free(timeline);
}
