/* SPDX-License-Identifier: Apache-2.0 */
/* Device and framework events of one process, undone from its end: levels, blocks, lifetimes. */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/back_walk.h"

/* Blocks of all processes in the table: the largest, and as many that live at the moment of the
 * report. */
enum { BLOCKS_MOST = 70000, CAPTURES_MOST = 4096, DROP_EVERY = 1 << 16 };

static struct timeline_ages *ages_of(const struct timeline_work *work, unsigned kind)
{
	return &work->timeline->ages[work->number * TIMELINE_LAYERS + walk_layer(kind)];
}

/* The ledger is the state after the last event. */
static void read_walked_ledger(struct timeline_work *work)
{
	const struct reader *reader = work->recorded->reader;
	uint64_t count = reader_count(reader, CUF_SEC_LEDGER);

	for (uint64_t i = 0; i < count; i++) {
		struct cuf_block block;
		uint32_t row;
		if (i % DROP_EVERY == DROP_EVERY - 1)
			reader_drop(reader, CUF_SEC_LEDGER);
		if (!replay_block(reader, i, &block))
			continue;
		row = levels_row(&work->device, block.kind, block.device,
				 reader_call_site(reader, block.stack));
		if (walk_shows(block.kind)) {
			levels_add(&work->device, row, walk_bytes(block.bytes), 1);
			ages_add(ages_of(work, block.kind), TIMELINE_AGES - 1, block.bytes, 1);
		}
		work->device.rows[row].last_ns = most_of(work->device.rows[row].last_ns,
							 block.time_ns);
		if (spans_has(block.kind))
			spans_live(&work->spans, &block, row);
	}
	reader_drop(reader, CUF_SEC_LEDGER);
}

static void count_event(struct timeline_work *work, struct level_row *row,
			const struct cuf_event *event)
{
	if (event->op == CUF_OP_ALLOC) {
		row->alloc_count++;
		row->alloc_bytes += (uint64_t)walk_bytes(event->bytes);
		row->most_bytes = most_of(row->most_bytes, event->bytes);
		if (!row->least_bytes || event->bytes < row->least_bytes)
			row->least_bytes = event->bytes;
		row->last_ns = most_of(row->last_ns, event->time_ns);
	} else if (event->op == CUF_OP_FREE) {
		row->free_count++;
		if (event->extra < TIMELINE_SHORT_MS) {
			row->short_count++;
			row->short_bytes += (uint64_t)walk_bytes(event->bytes);
		}
		if (walk_layer(event->kind) == TIMELINE_FRAMEWORK || event->kind != CUF_KIND_GRAPH)
			ages_add(ages_of(work, event->kind), ages_of_ms(event->extra),
				 event->bytes, 1);
	}
}

static void undo(struct timeline_work *work, const struct cuf_event *event)
{
	int sign = walk_sign(event);
	uint32_t row;

	if (!walk_shows(event->kind) && !spans_has(event->kind))
		return;
	row = levels_row(&work->device, event->kind, event->device,
			 walk_site(work->recorded->reader, event));
	if (walk_shows(event->kind)) {
		levels_add(&work->device, row, -sign * walk_bytes(event->bytes), -sign);
		count_event(work, &work->device.rows[row], event);
	}
	if (spans_has(event->kind))
		spans_undo(&work->spans, event, row);
}

/* Newest first: an end is met before its begin. */
static void note_capture(struct timeline_work *work, const struct cuf_event *event)
{
	uint64_t time_ns = work_realtime(work, event->time_ns);

	if (!event->extra) {
		if (work->capture_count == CAPTURES_MOST)
			return;
		xalloc_grow(&work->captures, work->capture_count, &work->capture_room,
			    sizeof *work->captures);
		work->captures[work->capture_count++] = (struct timeline_capture){
			work->number, event->tid, CUF_UNKNOWN, time_ns };
		return;
	}
	for (size_t i = work->capture_count; i--;)
		if (work->captures[i].tid == event->tid &&
		    !is_known(work->captures[i].begin_ns)) {
			work->captures[i].begin_ns = time_ns;
			return;
		}
	if (work->capture_count == CAPTURES_MOST)
		return;
	xalloc_grow(&work->captures, work->capture_count, &work->capture_room,
		    sizeof *work->captures);
	work->captures[work->capture_count++] = (struct timeline_capture){
		work->number, event->tid, time_ns, CUF_UNKNOWN };
}

static void note_report(struct timeline_work *work)
{
	for (size_t i = 0; i < work->device.count; i++) {
		struct level_row *row = &work->device.rows[i];
		row->report_bytes = row->bytes;
		row->report_count = row->count;
	}
	spans_pass_report(&work->spans);
}

/* Moments that an event belongs to were passed on the way back to it. *at counts down. */
struct passing {
	size_t at;      /* moments that are still before us */
	uint32_t later; /* the one that was passed last */
	bool reported;
};

static void pass_moments(struct timeline_work *work, struct passing *passing, uint64_t seq,
			 uint64_t realtime_ns)
{
	const struct timeline *timeline = work->timeline;

	if (!passing->reported && seq <= work->process->moment_seq) {
		note_report(work);
		passing->reported = true;
	}
	while (passing->at && moment_includes(work, &timeline->moments[passing->at - 1], seq,
					      realtime_ns)) {
		levels_pass_back(&work->device, passing->later);
		passing->later = (uint32_t)--passing->at;
	}
}

void timeline_walk_device(struct timeline_work *work)
{
	struct passing passing = { work->timeline->moment_count, FACT_NONE, false };
	size_t most = BLOCKS_MOST / work->facts->process_count;
	struct timeline_process *process = &work->timeline->processes[work->number];
	const struct events *events = work->recorded->events;
	struct back_walk walk;
	struct cuf_event event;

	levels_init(&work->device);
	spans_init(&work->spans, sizes_limit(&work->sizes, most),
		   sizes_limit(&work->live_sizes, most), most);
	process->first_ns[TIMELINE_DEVICE] = walk_first_ns(events);
	process->first_ns[TIMELINE_FRAMEWORK] = walk_first_ns(events->framework);
	for (unsigned layer = 0; layer < TIMELINE_HOST; layer++)
		if (process->first_ns[layer])
			process->first_ns[layer] = work_realtime(work, process->first_ns[layer]);
	read_walked_ledger(work);
	back_walk_begin(&walk, events, false);
	while (back_walk_next(&walk, &event)) {
		pass_moments(work, &passing, event.seq, work_realtime(work, event.time_ns));
		if (event.op == CUF_OP_CAPTURE)
			note_capture(work, &event);
		else
			undo(work, &event);
	}
	if (!passing.reported)
		note_report(work);
	if (passing.at)
		levels_pass_back(&work->device, passing.later);
	levels_close(&work->device);
	spans_close(&work->spans);
	reader_drop(work->recorded->reader, CUF_SEC_RING);
	reader_drop(work->recorded->reader, CUF_SEC_FRAMEWORK_RING);
}
