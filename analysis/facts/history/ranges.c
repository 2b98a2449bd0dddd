/* SPDX-License-Identifier: Apache-2.0 */
/* The least and the most bytes of each device in each stretch of time. */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/device_levels.h"

/* The level of one device, on the way back. */
struct track {
	struct timeline_range *range;
	int64_t level;
	size_t stretch; /* where it stands: all later ones are complete */
};

struct ranges {
	struct timeline *timeline;
	struct timeline_work *works;
	struct track *tracks; /* as timeline->ranges */
};

static size_t stretch_of(const struct timeline *timeline, uint64_t time_ns)
{
	uint64_t span = timeline->end_ns - timeline->begin_ns;
	double share;

	if (time_ns <= timeline->begin_ns || !span)
		return 0;
	share = (double)(time_ns - timeline->begin_ns) / (double)span;
	return (size_t)least_of((uint64_t)(share * TIMELINE_STRETCHES), TIMELINE_STRETCHES - 1);
}

static void note(struct track *track, size_t stretch, uint64_t time_ns)
{
	struct timeline_range *range = track->range;
	uint64_t level = track->level > 0 ? (uint64_t)track->level : 0;

	if (level <= range->low[stretch]) {
		range->low[stretch] = level;
		range->low_ns[stretch] = time_ns;
	}
	if (!is_known(range->high[stretch]) || level >= range->high[stretch]) {
		range->high[stretch] = level;
		range->high_ns[stretch] = time_ns;
	}
}

/* The level that held since this time is noted in every stretch down to it, then it changes. */
static void step_to(const struct timeline *timeline, struct track *track, uint64_t time_ns,
		    int64_t delta)
{
	size_t to = stretch_of(timeline, time_ns);
	uint64_t width = (timeline->end_ns - timeline->begin_ns) / TIMELINE_STRETCHES;

	for (; track->stretch > to; track->stretch--)
		note(track, track->stretch, timeline->begin_ns + track->stretch * width);
	note(track, track->stretch, most_of(time_ns, timeline->begin_ns));
	track->level += delta;
	track->range->any |= delta != 0;
}

static void take_change(void *state, const struct device_change *it)
{
	struct ranges *ranges = state;

	step_to(ranges->timeline, &ranges->tracks[2 * it->device + it->is_framework], it->time_ns,
		it->delta);
}

static void take_block(void *state, uint32_t process, unsigned kind, uint64_t bytes, bool is_live)
{
	struct timeline_work *work = &((struct ranges *)state)->works[process];

	if (!spans_has(kind))
		return;
	sizes_add(&work->sizes, bytes);
	if (is_live)
		sizes_add(&work->live_sizes, bytes);
}

void timeline_ranges(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts, const struct run *run)
{
	size_t count = 2 * facts->device_count;
	struct ranges ranges = { .timeline = timeline, .works = works,
				 .tracks = xalloc_zeroed(count, sizeof *ranges.tracks) };

	timeline->ranges = xalloc_zeroed(count, sizeof *timeline->ranges);
	for (size_t i = 0; i < count; i++) {
		struct timeline_range *range = &timeline->ranges[i];
		range->device = (uint32_t)(i / 2);
		range->layer = i % 2 ? TIMELINE_FRAMEWORK : TIMELINE_DEVICE;
		for (size_t at = 0; at < TIMELINE_STRETCHES; at++)
			range->low[at] = range->high[at] = CUF_UNKNOWN;
		ranges.tracks[i] = (struct track){ range, 0, TIMELINE_STRETCHES - 1 };
	}
	device_levels_walk(facts, run, NULL,
			   &(struct device_levels_visitor){ .change = take_change,
							    .block = take_block,
							    .state = &ranges });
	for (size_t i = 0; i < count; i++)
		step_to(timeline, &ranges.tracks[i], timeline->begin_ns, 0);
	free(ranges.tracks);
}
