/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least and the most bytes of each device in each stretch of time. The events of all processes
 * are undone in the order of time, newest first. A process joins with what it has at its end. Where
 * its oldest events were overwritten, the recorder's samples go on.
 */
#include "analysis/timeline/parts.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/segments.h"
#include "analysis/timeline/back_walk.h"

/* One process on its way back: its end, its events, then its samples. */
struct cursor {
	struct timeline_work *work;
	struct back_walk walk;
	enum { AT_END, AT_EVENTS, AT_SAMPLES, AT_START } phase;
	struct cuf_event event;
	size_t samples_left;
	uint64_t first_ns; /* CLOCK_MONOTONIC; 0: no event was lost */
	int64_t levels[CUF_DEVICES_MAX][2]; /* by ordinal; device and framework */
};

/* The level of one device, on the way back. */
struct track {
	struct timeline_range *range;
	int64_t level;
	size_t stretch; /* where it stands: all later ones are complete */
};

struct ranges {
	struct timeline *timeline;
	const struct facts *facts;
	struct cursor *cursors;
	struct track *tracks; /* as timeline->ranges */
	struct lane_heap heap; /* newest first */
};

static bool counts(const struct cuf_event *event)
{
	return event->device < CUF_DEVICES_MAX &&
	       (kind_is_device_memory(event->kind) || event->kind == CUF_KIND_FRAMEWORK);
}

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
static void change(struct ranges *ranges, struct track *track, uint64_t time_ns, int64_t delta)
{
	const struct timeline *timeline = ranges->timeline;
	size_t to = stretch_of(timeline, time_ns);
	uint64_t width = (timeline->end_ns - timeline->begin_ns) / TIMELINE_STRETCHES;

	for (; track->stretch > to; track->stretch--)
		note(track, track->stretch, timeline->begin_ns + track->stretch * width);
	note(track, track->stretch, most_of(time_ns, timeline->begin_ns));
	track->level += delta;
	track->range->any |= delta != 0;
}

/* NULL: no device of the report. */
static struct track *track_of(const struct ranges *ranges, const struct cursor *cursor,
			      unsigned ordinal, unsigned layer)
{
	uint32_t device = cursor->work->process->device_of[ordinal];

	if (device == FACT_NONE)
		return NULL;
	return &ranges->tracks[2 * device + layer];
}

static void add_level(struct ranges *ranges, struct cursor *cursor, unsigned ordinal,
		      unsigned layer, int64_t delta, uint64_t time_ns)
{
	struct track *track = track_of(ranges, cursor, ordinal, layer);

	cursor->levels[ordinal][layer] += delta;
	if (track && delta)
		change(ranges, track, time_ns, delta);
}

static void read_ledger(struct cursor *cursor)
{
	const struct reader *reader = cursor->work->recorded->reader;
	struct cuf_block block;

	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_LEDGER); i++) {
		if (!replay_block(reader, i, &block))
			continue;
		if (spans_has(block.kind)) {
			sizes_add(&cursor->work->sizes, block.bytes);
			sizes_add(&cursor->work->live_sizes, block.bytes);
		}
		if (block.device >= CUF_DEVICES_MAX ||
		    !(kind_is_device_memory(block.kind) || block.kind == CUF_KIND_FRAMEWORK))
			continue;
		cursor->levels[block.device][walk_layer(block.kind)] += walk_bytes(block.bytes);
	}
	reader_drop(reader, CUF_SEC_LEDGER);
}

/* What it has at its end counts from there back. */
static void join(struct ranges *ranges, struct cursor *cursor, uint64_t time_ns)
{
	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++)
		for (unsigned layer = 0; layer < 2; layer++) {
			int64_t level = cursor->levels[ordinal][layer];
			cursor->levels[ordinal][layer] = 0;
			add_level(ranges, cursor, ordinal, layer, level, time_ns);
		}
}

static void undo(struct ranges *ranges, struct cursor *cursor, uint64_t time_ns)
{
	const struct cuf_event *event = &cursor->event;
	int sign = walk_sign(event);

	if (event->op == CUF_OP_FREE && spans_has(event->kind))
		sizes_add(&cursor->work->sizes, event->bytes);
	if (sign && counts(event))
		add_level(ranges, cursor, event->device, walk_layer(event->kind),
			  -sign * walk_bytes(event->bytes), time_ns);
}

/* Before a sample, the one before it holds. Blocks of frameworks are not sampled. */
static void take_sample(struct ranges *ranges, struct cursor *cursor, uint64_t time_ns)
{
	const struct fact_process *process = cursor->work->process;

	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++) {
		int64_t level = 0;
		if (cursor->samples_left)
			level = walk_bytes(known_or_zero(
				process->timeline[cursor->samples_left - 1]
					.device_live_bytes[ordinal]));
		add_level(ranges, cursor, ordinal, 0, level - cursor->levels[ordinal][0], time_ns);
		add_level(ranges, cursor, ordinal, 1, -cursor->levels[ordinal][1], time_ns);
	}
}

/* The oldest event that is left is undone: samples older than it follow. */
static void turn_to_samples(struct cursor *cursor)
{
	const struct fact_process *process = cursor->work->process;
	uint64_t first_ns = work_realtime(cursor->work, cursor->first_ns);

	cursor->phase = AT_START;
	if (!cursor->first_ns)
		return;
	cursor->phase = AT_SAMPLES;
	cursor->samples_left = process->timeline_count;
	while (cursor->samples_left &&
	       process->timeline[cursor->samples_left - 1].time_ns > first_ns)
		cursor->samples_left--;
}

/* Where the next step of a cursor is in time. False: it is at its start. */
static bool advance(struct cursor *cursor, uint64_t *time_ns)
{
	const struct fact_process *process = cursor->work->process;

	if (cursor->phase == AT_EVENTS) {
		while (back_walk_next(&cursor->walk, &cursor->event)) {
			*time_ns = work_realtime(cursor->work, cursor->event.time_ns);
			return true;
		}
		turn_to_samples(cursor);
		if (cursor->phase == AT_SAMPLES) {
			*time_ns = work_realtime(cursor->work, cursor->first_ns);
			return true;
		}
	}
	if (cursor->phase == AT_SAMPLES && cursor->samples_left) {
		*time_ns = process->timeline[--cursor->samples_left].time_ns;
		return true;
	}
	return false;
}

/* One step of the process that comes next. */
static void step(struct ranges *ranges)
{
	uint32_t lane = ranges->heap.items[0];
	struct cursor *cursor = &ranges->cursors[lane];
	uint64_t time_ns = ~ranges->heap.keys[lane], next_ns = 0;
	bool more;

	switch (cursor->phase) {
	case AT_END:
		join(ranges, cursor, time_ns);
		cursor->phase = AT_EVENTS;
		break;
	case AT_EVENTS: undo(ranges, cursor, time_ns); break;
	default: take_sample(ranges, cursor, time_ns); break;
	}
	more = advance(cursor, &next_ns);
	lane_heap_settle(&ranges->heap, ~least_of(next_ns, time_ns), !more);
}

static void begin(struct ranges *ranges, struct timeline_work *works)
{
	lane_heap_init(&ranges->heap, ranges->facts->process_count);
	for (uint32_t i = 0; i < ranges->facts->process_count; i++) {
		struct cursor *cursor = &ranges->cursors[i];
		const struct fact_process *process = works[i].process;
		uint64_t end_ns = process->end_ns;
		cursor->work = &works[i];
		cursor->first_ns = walk_first_ns(works[i].recorded->events);
		back_walk_begin(&cursor->walk, works[i].recorded->events);
		read_ledger(cursor);
		if (end_may_run(process->end))
			end_ns = ranges->timeline->end_ns;
		lane_heap_push(&ranges->heap, i, ~end_ns);
	}
}

void timeline_ranges(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts)
{
	size_t count = 2 * facts->device_count;
	struct ranges ranges = { .timeline = timeline, .facts = facts,
		.cursors = xalloc_zeroed(facts->process_count, sizeof *ranges.cursors),
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
	begin(&ranges, works);
	while (ranges.heap.count)
		step(&ranges);
	for (size_t i = 0; i < count; i++)
		change(&ranges, &ranges.tracks[i], timeline->begin_ns, 0);
	lane_heap_fini(&ranges.heap);
	free(ranges.tracks);
	free(ranges.cursors);
}
