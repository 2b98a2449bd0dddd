/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites, values and blocks of all processes, from the rows of each. The rows with the highest peaks
 * become sites of their own, as many as the table of values has room for; the others are summed up
 * by process, layer, kind and device. So sums over sites are exact at every moment.
 */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/back_walk.h"

enum { SITES_MOST = 4000, VALUES_MOST = 300000 };

/* A row of one process, and how many entries it has. */
struct candidate {
	uint64_t order; /* ascending: the highest peak first */
	struct timeline_work *work;
	struct levels *levels;
	uint32_t row;
	uint32_t entries;
	uint32_t site; /* as found */
};

struct gather {
	struct timeline *timeline;
	const struct facts *facts;
	struct candidate *candidates;
	size_t count;
	struct hash_index rests; /* process, layer, kind, device to a site, plus 1 */
	size_t site_room, value_room;
	/* of a rest: the change at each moment */
	int64_t *changes;
};

static enum timeline_layer layer_of(const struct candidate *one)
{
	if (one->levels == &one->work->host)
		return TIMELINE_HOST;
	return walk_layer(one->levels->rows[one->row].kind);
}

/* Entries before the oldest event count at its moment: the last one of them holds there. */
static void cut_entries(struct levels *levels, const struct timeline_work *work, bool host)
{
	const struct timeline *timeline = work->timeline;
	uint32_t first[TIMELINE_LAYERS];
	size_t kept = 0;

	for (unsigned layer = 0; layer < TIMELINE_LAYERS; layer++) {
		uint64_t first_ns = timeline->processes[work->number].first_ns[layer];
		first[layer] = 0;
		while (first[layer] < timeline->moment_count &&
		       timeline->moments[first[layer]].time_ns < first_ns)
			first[layer]++;
	}
	for (size_t i = 0; i < levels->entry_count; i++) {
		struct level_entry entry = levels->entries[i];
		unsigned kind = levels->rows[entry.row].kind;
		uint32_t least = first[host ? TIMELINE_HOST : walk_layer(kind)];
		bool again;
		if (least >= timeline->moment_count)
			continue;
		if (entry.moment < least)
			entry.moment = least;
		again = kept && levels->entries[kept - 1].row == entry.row &&
			levels->entries[kept - 1].moment == entry.moment;
		levels->entries[kept - again] = entry;
		kept += !again;
	}
	levels->entry_count = kept;
}

static void sort_entries(struct levels *levels)
{
	/* row and moment are the first 8 bytes: sorted by moment, then by row */
	struct keyed { uint64_t key; struct level_entry entry; } *all =
		xalloc_zeroed(levels->entry_count, sizeof *all);

	for (size_t i = 0; i < levels->entry_count; i++) {
		all[i].entry = levels->entries[i];
		all[i].key = (uint64_t)all[i].entry.row << 32 | all[i].entry.moment;
	}
	sort_by_number(all, levels->entry_count, sizeof *all, offsetof(struct keyed, key));
	for (size_t i = 0; i < levels->entry_count; i++)
		levels->entries[i] = all[i].entry;
	free(all);
}

/* Each process has a moment of the report of its own. Those of the others are at the end of their
 * work, be it later than what the report is about. */
static uint32_t report_of(const struct timeline_work *work)
{
	const struct timeline *timeline = work->timeline;
	const struct timeline_moment *moment = &timeline->moments[timeline->report];

	if (moment->kind == TIMELINE_END && moment->process != work->number &&
	    work->process->end_ns > moment->time_ns)
		return FACT_NONE;
	return (uint32_t)timeline->report;
}

/* After its end a process holds nothing. The moment of the report is of what it held last. */
static void settle_entries(struct levels *levels, const struct timeline_work *work)
{
	const struct timeline *timeline = work->timeline;
	bool *is_over = xalloc_zeroed(timeline->moment_count, sizeof *is_over);
	uint64_t end_ns = levels == &work->device ? work->process->gone_ns : work->process->end_ns;

	for (size_t i = 0; i < timeline->moment_count; i++) {
		const struct timeline_moment *moment = &timeline->moments[i];
		is_over[i] = !end_may_run(work->process->end) &&
			     moment->process != work->number &&
			     moment->time_ns > end_ns;
	}
	levels_settle(levels, is_over, report_of(work), (uint32_t)timeline->moment_count);
	free(is_over);
}

static void add_candidates(struct gather *gather, struct timeline_work *work,
			   struct levels *levels)
{
	uint32_t *entries = xalloc_zeroed(levels->count, sizeof *entries);

	sort_entries(levels);
	cut_entries(levels, work, levels == &work->host);
	settle_entries(levels, work);
	for (size_t i = 0; i < levels->entry_count; i++)
		entries[levels->entries[i].row]++;
	for (size_t i = 0; i < levels->count; i++)
		gather->candidates[gather->count++] = (struct candidate){
			.order = ~(uint64_t)(levels->rows[i].peak_bytes > 0 ?
						     levels->rows[i].peak_bytes : 0),
			.work = work, .levels = levels, .row = (uint32_t)i, .entries = entries[i],
			.site = FACT_NONE,
		};
	free(entries);
}

/* A copy of the stack, as it was in use. */
static struct fact_stack stack_of(const struct candidate *one)
{
	const struct level_row *row = &one->levels->rows[one->row];
	const struct reader *reader = one->work->recorded->reader;
	struct fact_stack stack = { .process = one->work->number, .id = row->stack };

	stack.addrs = reader_stack(reader, row->stack, &stack.depth, &stack.stop);
	stack.time_ns = reader_realtime(reader, row->last_ns ? row->last_ns
							     : reader->header.start_ns);
	if (!stack.depth)
		stack.id = 0;
	return stack;
}

static uint32_t new_site(struct gather *gather, const struct candidate *one)
{
	struct timeline *timeline = gather->timeline;
	const struct level_row *row = &one->levels->rows[one->row];
	struct timeline_site *site;

	xalloc_grow(&timeline->sites, timeline->site_count, &gather->site_room,
		    sizeof *timeline->sites);
	site = &timeline->sites[timeline->site_count];
	*site = (struct timeline_site){
		.process = one->work->number,
		.layer = layer_of(one),
		.kind = row->kind,
		.device = FACT_NONE,
		.stack = { .process = one->work->number },
	};
	if (row->device < CUF_DEVICES_MAX)
		site->device = one->work->process->device_of[row->device];
	return (uint32_t)timeline->site_count++;
}

static uint64_t positive(int64_t number) { return number > 0 ? (uint64_t)number : 0; }

static void add_totals(struct timeline_site *site, const struct level_row *row)
{
	site->is_sampled |= row->is_drawn;
	site->alloc_count += row->alloc_count;
	site->alloc_bytes += row->alloc_bytes;
	site->free_count += row->free_count;
	site->short_count += row->short_count;
	site->short_bytes += row->short_bytes;
	site->live_bytes += positive(row->report_bytes);
	site->live_count += positive(row->report_count);
	site->most_bytes = most_of(site->most_bytes, row->most_bytes);
	if (row->least_bytes && (!site->least_bytes || row->least_bytes < site->least_bytes))
		site->least_bytes = row->least_bytes;
}

/* The site that has the sum of small ones. */
static uint32_t rest_of(struct gather *gather, const struct candidate *one)
{
	const struct level_row *row = &one->levels->rows[one->row];
	uint64_t key = (uint64_t)one->work->number << 32 | (uint64_t)layer_of(one) << 16 |
		       (uint64_t)row->kind << 8 | row->device;
	uint32_t *number = hash_index_place(&gather->rests, key);

	if (!*number) {
		uint32_t site = new_site(gather, one);
		gather->timeline->sites[site].is_rest = true;
		*number = site + 1;
	}
	return *number - 1;
}

/* The largest are sites of their own. Rows of one site each need no sum. */
static void choose_shown(struct gather *gather)
{
	uint64_t values = 0;

	sort_by_number(gather->candidates, gather->count, sizeof *gather->candidates,
		       offsetof(struct candidate, order));
	for (size_t i = 0; i < gather->count; i++) {
		struct candidate *one = &gather->candidates[i];
		const struct level_row *row = &one->levels->rows[one->row];
		bool own = gather->timeline->site_count < SITES_MOST &&
			   values + one->entries <= VALUES_MOST && ~one->order;
		one->site = own ? new_site(gather, one) : rest_of(gather, one);
		if (own) {
			struct timeline_site *site = &gather->timeline->sites[one->site];
			values += one->entries;
			site->stack = stack_of(one);
			site->peak_bytes = positive(row->peak_bytes);
		}
		add_totals(&gather->timeline->sites[one->site], row);
	}
}

static void add_value(struct gather *gather, const struct timeline_value *value)
{
	struct timeline *timeline = gather->timeline;

	xalloc_grow(&timeline->values, timeline->value_count, &gather->value_room,
		    sizeof *timeline->values);
	timeline->values[timeline->value_count++] = *value;
}

static const struct level_entry *entries_of(const struct levels *levels, uint32_t row,
					    size_t *count)
{
	size_t low = 0, high = levels->entry_count, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (levels->entries[middle].row < row)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < levels->entry_count && levels->entries[end].row == row; end++)
		;
	*count = end - low;
	return levels->entries + low;
}

/* The sum changes by what the row changes from entry to entry. changes: bytes and count. */
static void add_changes(int64_t *changes, const struct level_entry *entries, size_t count)
{
	uint64_t bytes = 0, blocks = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t now = positive(entries[i].bytes), live = positive(entries[i].count);
		changes[2 * entries[i].moment] += (int64_t)(now - bytes);
		changes[2 * entries[i].moment + 1] += (int64_t)(live - blocks);
		bytes = now;
		blocks = live;
	}
}

static void add_values_of(struct gather *gather, uint32_t site, const int64_t *changes)
{
	int64_t bytes = 0, count = 0;

	for (uint32_t m = 0; m < gather->timeline->moment_count; m++) {
		bytes += changes[2 * m];
		count += changes[2 * m + 1];
		if (changes[2 * m] || changes[2 * m + 1])
			add_value(gather, &(struct timeline_value){ site, m, positive(bytes),
								    positive(count) });
		if (gather->timeline->sites[site].is_rest)
			gather->timeline->sites[site].peak_bytes =
				most_of(gather->timeline->sites[site].peak_bytes, positive(bytes));
	}
}

/* Candidates by site: all of one site follow each other. */
static void add_values(struct gather *gather)
{
	size_t bytes = 2 * gather->timeline->moment_count * sizeof(int64_t);
	int64_t *changes = xalloc_zeroed(1, bytes);

	for (size_t i = 0; i < gather->count; i++)
		gather->candidates[i].order = gather->candidates[i].site;
	sort_by_number(gather->candidates, gather->count, sizeof *gather->candidates,
		       offsetof(struct candidate, order));
	for (size_t i = 0; i < gather->count;) {
		uint32_t site = gather->candidates[i].site;
		memset(changes, 0, bytes);
		for (; i < gather->count && gather->candidates[i].site == site; i++) {
			const struct candidate *one = &gather->candidates[i];
			size_t count;
			const struct level_entry *entries = entries_of(one->levels, one->row,
								       &count);
			add_changes(changes, entries, count);
		}
		add_values_of(gather, site, changes);
	}
	free(changes);
}

/* Rows of the facts know the role and the class of a call site. */
static void add_known(struct gather *gather, const struct fact_site *rows, size_t count)
{
	struct timeline *timeline = gather->timeline;
	struct hash_index index;

	hash_index_init(&index, timeline->site_count);
	for (size_t i = 0; i < timeline->site_count; i++) {
		const struct timeline_site *site = &timeline->sites[i];
		if (!site->is_rest)
			*hash_index_place(&index, (uint64_t)site->process << 48 |
						  (uint64_t)site->kind << 40 |
						  (uint64_t)(site->device & 0xff) << 32 |
						  site->stack.id) = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t found = hash_index_find(&index, (uint64_t)rows[i].process << 48 |
							 (uint64_t)(uint8_t)rows[i].kind << 40 |
							 (uint64_t)(rows[i].device & 0xff) << 32 |
							 rows[i].stack.id);
		if (found && !timeline->sites[found - 1].known)
			timeline->sites[found - 1].known = &rows[i];
	}
	hash_index_fini(&index);
}

static void add_blocks(struct gather *gather, struct timeline_work *work, const uint32_t *site_of)
{
	struct timeline *timeline = gather->timeline;
	const struct spans *spans = &work->spans;

	for (size_t i = 0; i < spans->count; i++) {
		const struct span_found *span = &spans->items[i];
		struct timeline_block *block = &timeline->blocks[timeline->block_count++];
		*block = (struct timeline_block){
			.address = span->address, .bytes = span->bytes,
			.born_ns = work_realtime(work, span->born_ns), .died_ns = CUF_UNKNOWN,
			.process = work->number, .device = FACT_NONE,
			.site = site_of[span->row], .kind = span->kind,
		};
		if (is_known(span->died_ns))
			block->died_ns = work_realtime(work, span->died_ns);
		if (span->kind == CUF_KIND_ASYNC)
			block->pool = span->aux;
		if (span->device < CUF_DEVICES_MAX)
			block->device = work->process->device_of[span->device];
	}
	timeline->blocks_left_out += spans->left_out;
	timeline->blocks_least_bytes = most_of(timeline->blocks_least_bytes, spans->ever.all_bytes);
	timeline->blocks_live_least_bytes =
		most_of(timeline->blocks_live_least_bytes, spans->live.all_bytes);
	timeline->blocks_complete &= !spans->overflowed;
}

static void gather_blocks(struct gather *gather, struct timeline_work *works)
{
	struct timeline *timeline = gather->timeline;
	size_t processes = gather->facts->process_count, total = 0;

	for (size_t p = 0; p < processes; p++)
		total += works[p].spans.count;
	timeline->blocks = xalloc_zeroed(total, sizeof *timeline->blocks);
	timeline->blocks_complete = true;
	for (size_t p = 0; p < processes; p++) {
		uint32_t *site_of = xalloc_zeroed(works[p].device.count, sizeof *site_of);
		for (size_t i = 0; i < gather->count; i++)
			if (gather->candidates[i].levels == &works[p].device)
				site_of[gather->candidates[i].row] = gather->candidates[i].site;
		add_blocks(gather, &works[p], site_of);
		free(site_of);
	}
	sort_by_number(timeline->blocks, timeline->block_count, sizeof *timeline->blocks,
		       offsetof(struct timeline_block, born_ns));
}

void timeline_gather(struct timeline_work *works, struct timeline *timeline,
		     const struct facts *facts)
{
	struct gather gather = { .timeline = timeline, .facts = facts };
	size_t rows = 0;

	for (size_t p = 0; p < facts->process_count; p++)
		rows += works[p].device.count + works[p].host.count;
	gather.candidates = xalloc_zeroed(rows, sizeof *gather.candidates);
	hash_index_init(&gather.rests, 0);
	for (size_t p = 0; p < facts->process_count; p++) {
		add_candidates(&gather, &works[p], &works[p].device);
		add_candidates(&gather, &works[p], &works[p].host);
	}
	choose_shown(&gather);
	add_values(&gather);
	add_known(&gather, facts->leaks, facts->leak_count);
	add_known(&gather, facts->growth, facts->growth_count);
	gather_blocks(&gather, works);
	hash_index_fini(&gather.rests);
	free(gather.candidates);
}
