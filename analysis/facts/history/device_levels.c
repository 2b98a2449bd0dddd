/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/facts/history/device_levels.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/totals.h"
#include "analysis/recording/segments.h"
#include "analysis/facts/history/back_walk.h"

/* One process on its way back: its end, its events, then its samples. */
struct cursor {
	const struct run_process *recorded;
	const struct fact_process *process;
	struct back_walk walk;
	enum { AT_END, AT_EVENTS, AT_SAMPLES, AT_START } phase;
	struct cuf_event event;
	size_t samples_left;
	uint64_t first_ns; /* CLOCK_MONOTONIC; 0: no event was lost */
	int64_t levels[CUF_DEVICES_MAX][2]; /* by ordinal; device and framework */
};

struct walking {
	const struct facts *facts;
	const struct device_levels_visitor *visitor;
	struct cursor *cursors;
	struct lane_heap heap; /* newest first */
	size_t steps;
	bool is_sampled;
};

/* Of all processes together: as many events as one process may hold the pages of. */
enum { DROP_EVERY = 1 << 18 };

static uint64_t realtime(const struct cursor *cursor, uint64_t monotonic_ns)
{
	const struct cuf_header *header = &cursor->recorded->reader->header;
	return monotonic_ns - header->start_ns + header->start_realtime_ns;
}

static bool counts(unsigned device, unsigned kind)
{
	return device < CUF_DEVICES_MAX &&
	       (kind_is_device_memory(kind) || kind == CUF_KIND_FRAMEWORK);
}

static void add_level(struct walking *walking, uint32_t lane, unsigned ordinal, unsigned layer,
		      int64_t delta, uint64_t time_ns)
{
	struct cursor *cursor = &walking->cursors[lane];
	uint32_t device = cursor->process->device_of[ordinal];

	cursor->levels[ordinal][layer] += delta;
	if (device == FACT_NONE || !delta)
		return;
	walking->visitor->change(walking->visitor->state,
				 &(struct device_change){ lane, device, layer, walking->is_sampled,
							  time_ns, delta });
}

static void tell_block(const struct walking *walking, uint32_t lane, unsigned kind, uint64_t bytes,
		       bool is_live)
{
	if (walking->visitor->block)
		walking->visitor->block(walking->visitor->state, lane, kind, bytes, is_live);
}

static void read_device_ledger(struct walking *walking, uint32_t lane)
{
	struct cursor *cursor = &walking->cursors[lane];
	const struct reader *reader = cursor->recorded->reader;
	struct cuf_block block;

	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_LEDGER); i++) {
		if (!replay_block(reader, i, &block))
			continue;
		tell_block(walking, lane, block.kind, block.bytes, true);
		if (counts(block.device, block.kind))
			cursor->levels[block.device][block.kind == CUF_KIND_FRAMEWORK] +=
				walk_bytes(block.bytes);
	}
	reader_drop(reader, CUF_SEC_LEDGER);
}

/* What it has at its end counts from there back. */
static void join(struct walking *walking, uint32_t lane, uint64_t time_ns)
{
	struct cursor *cursor = &walking->cursors[lane];

	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++)
		for (unsigned layer = 0; layer < 2; layer++) {
			int64_t level = cursor->levels[ordinal][layer];
			cursor->levels[ordinal][layer] = 0;
			add_level(walking, lane, ordinal, layer, level, time_ns);
		}
}

static void undo(struct walking *walking, uint32_t lane, uint64_t time_ns)
{
	const struct cuf_event *event = &walking->cursors[lane].event;
	int sign = walk_sign(event);

	if (event->op == CUF_OP_FREE)
		tell_block(walking, lane, event->kind, event->bytes, false);
	if (sign && counts(event->device, event->kind))
		add_level(walking, lane, event->device, event->kind == CUF_KIND_FRAMEWORK,
			  -sign * walk_bytes(event->bytes), time_ns);
}

/* Before a sample, the one before it holds. Blocks of frameworks are not sampled. */
static void take_sample(struct walking *walking, uint32_t lane, uint64_t time_ns)
{
	struct cursor *cursor = &walking->cursors[lane];
	const struct fact_process *process = cursor->process;

	walking->is_sampled = true;
	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++) {
		int64_t level = 0;
		if (cursor->samples_left)
			level = walk_bytes(known_or_zero(
				process->timeline[cursor->samples_left - 1]
					.device_live_bytes[ordinal]));
		add_level(walking, lane, ordinal, 0, level - cursor->levels[ordinal][0], time_ns);
		add_level(walking, lane, ordinal, 1, -cursor->levels[ordinal][1], time_ns);
	}
}

/* The oldest event that is left is undone: samples older than it follow. */
static void turn_to_samples(struct cursor *cursor)
{
	const struct fact_process *process = cursor->process;
	uint64_t first_ns = realtime(cursor, cursor->first_ns);

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
	const struct fact_process *process = cursor->process;

	if (cursor->phase == AT_EVENTS) {
		while (back_walk_next(&cursor->walk, &cursor->event)) {
			*time_ns = realtime(cursor, cursor->event.time_ns);
			return true;
		}
		turn_to_samples(cursor);
		if (cursor->phase == AT_SAMPLES) {
			*time_ns = realtime(cursor, cursor->first_ns);
			return true;
		}
	}
	if (cursor->phase == AT_SAMPLES && cursor->samples_left) {
		*time_ns = process->timeline[--cursor->samples_left].time_ns;
		return true;
	}
	return false;
}

/* All rings are open at once, and none is long enough to be dropped by its own walk. */
static void drop_pages(const struct walking *walking)
{
	for (size_t i = 0; i < walking->facts->process_count; i++)
		if (walking->cursors[i].recorded) {
			reader_drop(walking->cursors[i].recorded->reader, CUF_SEC_RING);
			reader_drop(walking->cursors[i].recorded->reader, CUF_SEC_FRAMEWORK_RING);
		}
}

/* One step of the process that comes next. */
static void step(struct walking *walking)
{
	uint32_t lane = walking->heap.items[0];
	struct cursor *cursor = &walking->cursors[lane];
	uint64_t time_ns = ~walking->heap.keys[lane], next_ns = 0;
	bool more;

	switch (cursor->phase) {
	case AT_END:
		join(walking, lane, time_ns);
		cursor->phase = AT_EVENTS;
		break;
	case AT_EVENTS: undo(walking, lane, time_ns); break;
	default: take_sample(walking, lane, time_ns); break;
	}
	if (++walking->steps % DROP_EVERY == 0)
		drop_pages(walking);
	more = advance(cursor, &next_ns);
	lane_heap_settle(&walking->heap, ~least_of(next_ns, time_ns), !more);
}

static void begin(struct walking *walking, const struct run *run, uint32_t lane)
{
	struct cursor *cursor = &walking->cursors[lane];
	const struct facts *facts = walking->facts;
	uint64_t end_ns = facts->processes[lane].gone_ns;

	cursor->recorded = &run->processes[lane];
	cursor->process = &facts->processes[lane];
	cursor->first_ns = walk_first_ns(cursor->recorded->events);
	back_walk_begin(&cursor->walk, cursor->recorded->events,
			walking->visitor->is_of_driver);
	read_device_ledger(walking, lane);
	if (!is_known(end_ns))
		end_ns = facts->processes[0].start_ns + facts_duration_ns(facts);
	lane_heap_push(&walking->heap, lane, ~end_ns);
}

void device_levels_walk(const struct facts *facts, const struct run *run, const bool *whose,
			const struct device_levels_visitor *visitor)
{
	struct walking walking = { .facts = facts, .visitor = visitor,
		.cursors = xalloc_zeroed(facts->process_count, sizeof *walking.cursors) };

	lane_heap_init(&walking.heap, facts->process_count);
	for (uint32_t i = 0; i < facts->process_count; i++)
		if (!whose || whose[i])
			begin(&walking, run, i);
	while (walking.heap.count)
		step(&walking);
	lane_heap_fini(&walking.heap);
	free(walking.cursors);
}
