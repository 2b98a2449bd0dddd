/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a snapshot. A driver's block that the framework split at any time is a segment; any
 * other one is a segment and a block at once, since the viewer draws blocks.
 */
#include "analysis/view/export/torch_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

#define SEGMENT_BYTES_MIN (1ull << 20) /* as in measure/framework_map.c */

/* The driver's blocks that are live at an event, by address, and the call sites of those that were
 * split. */
struct holders {
	struct holder { uint64_t addr, bytes; uint32_t site; } *items;
	size_t count, room;
	struct hash_index split; /* sites */
};

static bool is_driver(unsigned kind) { return kind != CUF_KIND_FRAMEWORK; }

/* The first holder that begins after an address. */
static size_t holder_after(const struct holders *holders, uint64_t addr)
{
	size_t low = 0, high = holders->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (holders->items[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_out(struct holders *holders, uint64_t addr)
{
	size_t at = holder_after(holders, addr);

	if (!at || holders->items[at - 1].addr != addr)
		return;
	memmove(&holders->items[at - 1], &holders->items[at],
		(holders->count - at) * sizeof *holders->items);
	holders->count--;
}

static void put_in(struct holders *holders, uint64_t addr, uint64_t bytes, uint32_t site)
{
	size_t at;

	take_out(holders, addr);
	at = holder_after(holders, addr);
	xalloc_grow(&holders->items, holders->count, &holders->room, sizeof *holders->items);
	memmove(&holders->items[at + 1], &holders->items[at],
		(holders->count - at) * sizeof *holders->items);
	holders->items[at] = (struct holder){ addr, bytes, site };
	holders->count++;
}

static void note_split(struct holders *holders, uint64_t addr)
{
	size_t at = holder_after(holders, addr);

	if (!at || addr - holders->items[at - 1].addr >= holders->items[at - 1].bytes)
		return;
	*hash_index_place(&holders->split, holders->items[at - 1].site) = 1;
}

/* Blocks that were there before the first event can be split, too. */
static void note_older(void *context, const struct block_row *block)
{
	struct torch *torch = context;

	if (!block->born_seen && is_driver(block->kind) && block->bytes >= SEGMENT_BYTES_MIN)
		put_in(torch->holders, block->addr, block->bytes, block->site);
}

static void note_event(void *context, const struct event_row *event)
{
	struct torch *torch = context;
	bool is_free = event->op == EVENT_FREE;

	if (event->op == EVENT_FAIL)
		return;
	if (!is_driver(event->kind)) {
		if (!is_free)
			note_split(torch->holders, event->addr);
		return;
	}
	if (event->bytes < SEGMENT_BYTES_MIN)
		return;
	if (is_free)
		take_out(torch->holders, event->addr);
	else
		put_in(torch->holders, event->addr, event->bytes, event->site);
}

/* ---- writing ---- */

static void put_action(struct torch *torch, const char *action, const struct event_row *event)
{
	struct pickle *pickle = &torch->pickle;

	pickle_begin_dict(pickle);
	pickle_word(pickle, "action");
	pickle_word(pickle, action);
	torch_put(torch, "addr", event->addr);
	torch_put(torch, "size", event->bytes);
	torch_put(torch, "stream", 0);
	torch_put(torch, "time_us", event->time_ns / 1000);
	pickle_word(pickle, "frames");
	torch_frames(torch, event->site);
}

static void put_block_event(struct torch *torch, const struct event_row *event)
{
	if (event->op != EVENT_FREE) {
		put_action(torch, "alloc", event);
		pickle_end_dict(&torch->pickle);
		return;
	}
	put_action(torch, "free_requested", event);
	pickle_end_dict(&torch->pickle);
	put_action(torch, "free_completed", event);
	pickle_end_dict(&torch->pickle);
}

static void put_segment_event(struct torch *torch, const struct event_row *event)
{
	static const char *const actions[2][2] = { { "segment_alloc", "segment_free" },
						   { "segment_map", "segment_unmap" } };

	put_action(torch, actions[event->kind == CUF_KIND_MAPPING][event->op == EVENT_FREE],
		   event);
	pickle_end_dict(&torch->pickle);
}

static void put_failure(struct torch *torch, const struct event_row *event)
{
	const struct facts *facts = rows_facts(torch->rows);
	uint64_t free_bytes = CUF_UNKNOWN;

	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *incident = &facts->incidents[i];

		for (size_t a = 0; incident->process == torch->process &&
		     a < incident->attempt_count; a++)
			if (incident->attempts[a].number == event->incident)
				free_bytes = incident->attempts[a].free_bytes;
	}
	put_action(torch, "oom", event);
	torch_put(torch, "device_free", known_or_zero(free_bytes));
	pickle_end_dict(&torch->pickle);
}

static void put_event(void *context, const struct event_row *event)
{
	struct torch *torch = context;
	const struct fact_process *process = &rows_facts(torch->rows)->processes[torch->process];
	bool plain;

	/* physical memory appears where it is mapped */
	if (event->kind == CUF_KIND_VMM && event->op != EVENT_FAIL)
		return;
	if (event->device == FACT_NONE || event->device != process->device_of[torch->ordinal] ||
	    event->seq > process->live.device_seq[torch->ordinal])
		return;
	if (event->op == EVENT_FAIL) {
		put_failure(torch, event);
		return;
	}
	if (!is_driver(event->kind)) {
		put_block_event(torch, event);
		return;
	}
	plain = !hash_index_find(&torch->holders->split, event->site);
	if (plain && event->op == EVENT_FREE)
		put_block_event(torch, event);
	put_segment_event(torch, event);
	if (plain && event->op != EVENT_FREE)
		put_block_event(torch, event);
}

void torch_put_traces(struct torch *torch)
{
	const struct fact_process *process = &rows_facts(torch->rows)->processes[torch->process];
	struct holders holders = { 0 };
	unsigned devices = 0;

	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
		if (process->device_of[d] != FACT_NONE)
			devices = d + 1;
	hash_index_init(&holders.split, 64);
	torch->holders = &holders;
	if (torch_has_kind(torch, CUF_KIND_FRAMEWORK)) {
		rows_blocks(torch->rows, note_older, torch);
		rows_events(torch->rows, note_event, torch);
	}
	pickle_begin_list(&torch->pickle);
	for (torch->ordinal = 0; torch->ordinal < devices; torch->ordinal++) {
		pickle_begin_list(&torch->pickle);
		if (process->device_of[torch->ordinal] != FACT_NONE)
			rows_events(torch->rows, put_event, torch);
		pickle_end_list(&torch->pickle);
	}
	pickle_end_list(&torch->pickle);
	free(holders.items);
	hash_index_fini(&holders.split);
}
