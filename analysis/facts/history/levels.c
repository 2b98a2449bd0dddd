/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by call site; only those that changed are looked at when a moment is passed. */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"

void levels_init(struct levels *levels)
{
	*levels = (struct levels){ 0 };
	hash_index_init(&levels->index, 0);
}

void levels_fini(struct levels *levels)
{
	hash_index_fini(&levels->index);
	free(levels->rows);
	free(levels->dirty);
	free(levels->entries);
	*levels = (struct levels){ 0 };
}

uint32_t levels_row(struct levels *levels, unsigned kind, unsigned device, uint32_t stack)
{
	uint64_t key = (uint64_t)(device & 0xff) << 40 | (uint64_t)(kind & 0xff) << 32 | stack;
	uint32_t *number = hash_index_place(&levels->index, key);

	if (!*number) {
		xalloc_grow(&levels->rows, levels->count, &levels->room, sizeof *levels->rows);
		levels->rows[levels->count] = (struct level_row){ .stack = stack,
								  .kind = (uint8_t)kind,
								  .device = (uint8_t)device };
		*number = (uint32_t)++levels->count;
	}
	return *number - 1;
}

void levels_add(struct levels *levels, uint32_t number, int64_t bytes, int64_t count)
{
	struct level_row *row = &levels->rows[number];

	row->bytes += bytes;
	row->count += count;
	if (row->bytes > row->peak_bytes)
		row->peak_bytes = row->bytes;
	if (row->is_dirty)
		return;
	row->is_dirty = true;
	xalloc_grow(&levels->dirty, levels->dirty_count, &levels->dirty_room,
		    sizeof *levels->dirty);
	levels->dirty[levels->dirty_count++] = number;
}

static void add_entry(struct levels *levels, uint32_t row, uint32_t moment, int64_t bytes,
		      int64_t count)
{
	xalloc_grow(&levels->entries, levels->entry_count, &levels->entry_room,
		    sizeof *levels->entries);
	levels->entries[levels->entry_count++] = (struct level_entry){ row, moment, bytes, count };
}

void levels_pass_forward(struct levels *levels, uint32_t moment)
{
	for (size_t i = 0; i < levels->dirty_count; i++) {
		struct level_row *row = &levels->rows[levels->dirty[i]];
		row->is_dirty = false;
		if (row->bytes == row->kept_bytes && row->count == row->kept_count)
			continue;
		row->kept_bytes = row->bytes;
		row->kept_count = row->count;
		add_entry(levels, levels->dirty[i], moment, row->bytes, row->count);
	}
	levels->dirty_count = 0;
}

void levels_pass_back(struct levels *levels, uint32_t later)
{
	for (size_t i = 0; i < levels->dirty_count; i++) {
		struct level_row *row = &levels->rows[levels->dirty[i]];
		row->is_dirty = false;
		if (later != FACT_NONE &&
		    (row->bytes != row->kept_bytes || row->count != row->kept_count))
			add_entry(levels, levels->dirty[i], later, row->kept_bytes,
				  row->kept_count);
		row->kept_bytes = row->bytes;
		row->kept_count = row->count;
	}
	levels->dirty_count = 0;
}

void levels_close(struct levels *levels)
{
	for (size_t i = 0; i < levels->count; i++) {
		const struct level_row *row = &levels->rows[i];
		if (row->kept_bytes || row->kept_count)
			add_entry(levels, (uint32_t)i, 0, row->kept_bytes, row->kept_count);
	}
}

struct settling {
	const bool *is_over;
	uint32_t report, moments;
	uint32_t *turns; /* for each moment the next at which rows may change without an entry */
};

static void find_turns(struct settling *settling)
{
	uint32_t turn = settling->moments;

	settling->turns = xalloc_zeroed(settling->moments, sizeof *settling->turns);
	for (uint32_t m = settling->moments; m--;) {
		settling->turns[m] = turn;
		if (m == settling->report || m == settling->report + 1 ||
		    (m && settling->is_over[m] != settling->is_over[m - 1]))
			turn = m;
	}
}

/* Of one row, entries[at] to entries[end]: an entry where what it shows changes. */
static void settle_row(struct levels *to, const struct levels *from, size_t at, size_t end,
		       const struct settling *settling)
{
	const struct level_row *row = &from->rows[from->entries[at].row];
	struct level_entry held = { .row = from->entries[at].row }, shown = held;
	uint32_t m = from->entries[at].moment;

	if (settling->report < m)
		m = settling->report;
	while (m < settling->moments) {
		struct level_entry now;
		for (; at < end && from->entries[at].moment == m; at++)
			held = from->entries[at];
		now = held;
		if (m == settling->report) {
			now.bytes = row->report_bytes;
			now.count = row->report_count;
		} else if (settling->is_over[m]) {
			now.bytes = now.count = 0;
		}
		if (now.bytes != shown.bytes || now.count != shown.count)
			add_entry(to, now.row, m, now.bytes, now.count);
		shown = now;
		m = settling->turns[m];
		if (at < end && from->entries[at].moment < m)
			m = from->entries[at].moment;
	}
}

void levels_settle(struct levels *levels, const bool *is_over, uint32_t report, uint32_t moments)
{
	struct settling settling = { .is_over = is_over, .report = report, .moments = moments };
	struct levels settled = { 0 };

	find_turns(&settling);
	for (size_t i = 0, end; i < levels->entry_count; i = end) {
		for (end = i; end < levels->entry_count &&
			      levels->entries[end].row == levels->entries[i].row; end++)
			;
		settle_row(&settled, levels, i, end, &settling);
	}
	free(settling.turns);
	free(levels->entries);
	levels->entries = settled.entries;
	levels->entry_count = settled.entry_count;
	levels->entry_room = settled.entry_room;
}
