/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call sites allocate segments: device blocks that a framework's blocks lie in. What such a
 * site allocates is held by whoever got the blocks inside.
 */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/parts.h"

/* Blocks of different times that begin at one address, or overlap. */
enum { LOOK_BACK = 256 };

struct ranges { const struct timeline_block **items; size_t count; };

static int by_address(const void *a, const void *b)
{
	const struct timeline_block *left = *(const struct timeline_block *const *)a,
				    *right = *(const struct timeline_block *const *)b;

	if (left->process != right->process)
		return compare_numbers(left->process, right->process);
	if (left->address != right->address)
		return compare_numbers(left->address, right->address);
	return compare_numbers(left->born_ns, right->born_ns);
}

static void collect(const struct timeline *timeline, struct ranges *out)
{
	out->items = xalloc_zeroed(timeline->block_count, sizeof *out->items);
	out->count = 0;
	for (size_t i = 0; i < timeline->block_count; i++)
		if (timeline->blocks[i].kind != CUF_KIND_FRAMEWORK &&
		    timeline->blocks[i].kind != CUF_KIND_RESERVATION)
			out->items[out->count++] = &timeline->blocks[i];
	if (out->count)
		qsort(out->items, out->count, sizeof *out->items, by_address);
}

static bool contains(const struct timeline_block *range, const struct timeline_block *block)
{
	return range->process == block->process && block->address >= range->address &&
	       block->address - range->address < range->bytes &&
	       range->born_ns <= block->born_ns && range->died_ns >= block->born_ns;
}

/* The range that held a block when it was born; NULL: none that is known. */
static const struct timeline_block *range_of(const struct ranges *ranges,
					     const struct timeline_block *block)
{
	size_t low = 0, high = ranges->count;
	struct timeline_block key = { .process = block->process, .address = block->address,
				      .born_ns = CUF_UNKNOWN };
	const struct timeline_block *sought = &key;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (by_address(&ranges->items[middle], &sought) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i && low - i < LOOK_BACK; i--)
		if (contains(ranges->items[i - 1], block))
			return ranges->items[i - 1];
	return NULL;
}

/* Of mapped addresses the memory is made elsewhere: all that make such memory. */
static void mark(struct timeline *timeline, const struct timeline_block *range)
{
	timeline->sites[range->site].is_segment = true;
	if (range->kind != CUF_KIND_MAPPING)
		return;
	for (size_t i = 0; i < timeline->site_count; i++)
		if (timeline->sites[i].kind == CUF_KIND_VMM &&
		    timeline->sites[i].process == range->process &&
		    timeline->sites[i].device == range->device)
			timeline->sites[i].is_segment = true;
}

void timeline_segments(struct timeline *timeline)
{
	struct ranges ranges;

	collect(timeline, &ranges);
	for (size_t i = 0; i < timeline->block_count; i++) {
		const struct timeline_block *range = NULL;
		if (timeline->blocks[i].kind == CUF_KIND_FRAMEWORK)
			range = range_of(&ranges, &timeline->blocks[i]);
		if (range && !timeline->sites[range->site].is_segment)
			mark(timeline, range);
	}
	free(ranges.items);
	for (size_t i = 0; i < timeline->site_count; i++) {
		struct timeline_site *site = &timeline->sites[i];
		site->is_segment |= site->known && site->known->holds_blocks;
		site->is_segment &= !site->is_rest;
	}
}
