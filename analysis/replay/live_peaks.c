/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/replay/live_peaks.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/replay/replay.h"

enum live_group live_group_of(unsigned kind, unsigned flags)
{
	if (kind == CUF_KIND_PINNED || kind == CUF_KIND_REGISTERED)
		return LIVE_PINNED;
	if (kind == CUF_KIND_MANAGED)
		return LIVE_MANAGED;
	if (kind == CUF_KIND_FRAMEWORK)
		return LIVE_FRAMEWORK;
	if (kind_is_device_memory(kind) && !(flags & CUF_EVENT_HOST_LOCATION))
		return LIVE_DEVICE;
	return LIVE_GROUPS;
}

/* Before exit handlers, and before an interpreter that shut down freed everything. */
uint64_t seq_at_end(const struct reader *reader)
{
	if (!reader->header.end_kind || !reader->header.end_seq)
		return CUF_UNKNOWN;
	if (!reader->header.work_end_ns)
		return reader->header.end_seq;
	return least_of(reader->header.work_end_seq, reader->header.end_seq);
}

/* ---- what changed since a peak ---- */

void level_changes_init(struct level_changes *changes)
{
	*changes = (struct level_changes){ 0 };
	hash_index_init(&changes->places, 0);
}

void level_changes_fini(struct level_changes *changes)
{
	hash_index_fini(&changes->places);
	free(changes->items);
}

/* What was noted of an earlier peak is forgotten by the count. */
void level_changes_add(struct level_changes *changes, uint32_t site, uint64_t bytes, uint64_t count)
{
	uint32_t *place = hash_index_place(&changes->places, site);
	struct level_change *change;

	if (!*place || *place > changes->count || changes->items[*place - 1].site != site) {
		xalloc_grow(&changes->items, changes->count, &changes->room,
			    sizeof *changes->items);
		changes->items[changes->count++] = (struct level_change){ .site = site };
		*place = (uint32_t)changes->count;
	}
	change = &changes->items[*place - 1];
	change->bytes += bytes;
	change->count += count;
}

/* ---- the peaks ---- */

static int sign_of(const struct cuf_event *event)
{
	if (event->bytes > BYTES_SANE)
		return 0;
	if (event->op == CUF_OP_FREE)
		return -1;
	return event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE;
}

static void note_level(struct live_peaks *peaks, enum live_group group,
		       const struct cuf_event *event, int sign)
{
	struct level_changes *since = &peaks->since[group];
	uint32_t stack = event->op == CUF_OP_ALLOC ? event->stack : event->alloc_stack;
	uint64_t bytes = (uint64_t)sign * event->bytes;

	peaks->level[group] += (int64_t)bytes;
	if (peaks->level[group] > peaks->highest[group]) {
		peaks->highest[group] = peaks->level[group];
		peaks->highest_seq[group] = event->seq;
		since->count = 0;
	} else if (peaks->highest_seq[group]) {
		level_changes_add(since, reader_call_site(peaks->reader, stack), bytes,
				  (uint64_t)sign);
	}
}

static bool peaks_take_row(void *state, const struct sweep_row *row)
{
	struct live_peaks *peaks = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];
		enum live_group group = live_group_of(event->kind, event->flags);
		int sign = sign_of(event);

		if (event->seq > peaks->end_seq)
			return false;
		if (group != LIVE_GROUPS && event->seq > peaks->after_seq && sign)
			note_level(peaks, group, event, sign);
	}
	return true;
}

struct sweep_consumer live_peaks_begin(struct live_peaks *peaks, const struct events *events)
{
	*peaks = (struct live_peaks){
		.reader = events->reader,
		.after_seq = most_of(events->complete_since, events->framework->complete_since),
		.end_seq = seq_at_end(events->reader),
	};
	for (unsigned i = 0; i < LIVE_GROUPS; i++)
		level_changes_init(&peaks->since[i]);
	return (struct sweep_consumer){ peaks_take_row, peaks };
}

void live_peaks_end(struct live_peaks *peaks)
{
	for (unsigned i = 0; i < LIVE_GROUPS; i++)
		level_changes_fini(&peaks->since[i]);
}
