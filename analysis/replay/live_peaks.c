/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/replay/live_peaks.h"

#include "analysis/base/numbers.h"
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

static int64_t delta_of(const struct cuf_event *event)
{
	if (event->bytes > BYTES_SANE)
		return 0;
	if (event->op == CUF_OP_FREE)
		return -(int64_t)event->bytes;
	if (event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE)
		return (int64_t)event->bytes;
	return 0;
}

static bool peaks_take_row(void *state, const struct sweep_row *row)
{
	struct live_peaks *peaks = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];
		enum live_group group = live_group_of(event->kind, event->flags);

		if (event->seq > peaks->end_seq)
			return false;
		if (group == LIVE_GROUPS || event->seq <= peaks->after_seq)
			continue;
		peaks->level[group] += delta_of(event);
		if (peaks->level[group] > peaks->highest[group]) {
			peaks->highest[group] = peaks->level[group];
			peaks->highest_seq[group] = event->seq;
		}
	}
	return true;
}

struct sweep_consumer live_peaks_begin(struct live_peaks *peaks, const struct events *events)
{
	*peaks = (struct live_peaks){
		.after_seq = most_of(events->complete_since, events->framework->complete_since),
		.end_seq = seq_at_end(events->reader),
	};
	return (struct sweep_consumer){ peaks_take_row, peaks };
}
