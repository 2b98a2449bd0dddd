/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, not single events: a call for each event and consumer would cost as much as the walk. */
#include "analysis/replay/sweep.h"

static void fill_row(struct sweep_row *row, struct event_merge *merge)
{
	row->count = 0;
	while (row->count < SWEEP_ROW) {
		size_t of_framework = merge->at[1];

		if (!event_merge_next(merge, &row->events[row->count]))
			break;
		row->is_framework[row->count++] = merge->at[1] != of_framework;
	}
}

/* How many want more. The first row is empty: nothing is read if nobody listens. */
static size_t offer(struct sweep_consumer *consumers, size_t count, const struct sweep_row *row)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		if (consumers[i].take && !consumers[i].take(consumers[i].state, row))
			consumers[i].take = NULL;
		left += consumers[i].take != NULL;
	}
	return left;
}

void sweep_events(const struct events *events, struct sweep_consumer *consumers, size_t count)
{
	struct event_merge merge;
	struct sweep_row row = { .count = 0 };

	event_merge_begin(&merge, events, 0);
	while (offer(consumers, count, &row)) {
		fill_row(&row, &merge);
		if (!row.count)
			break;
	}
	reader_drop(events->reader, CUF_SEC_RING);
	reader_drop(events->reader, CUF_SEC_FRAMEWORK_RING);
}
