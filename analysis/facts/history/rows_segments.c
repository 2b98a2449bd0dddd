/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a device at the moment: segments of frameworks with their blocks, then all else. */
#include "analysis/facts/history/rows.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "analysis/measure/framework_segments.h"
#include "analysis/facts/history/rows_parts.h"

static const struct framework_range *range_at(const struct framework_map *map, uint64_t addr)
{
	size_t low = 0, high = map->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < map->range_count && map->ranges[low].addr == addr ? &map->ranges[low] : NULL;
}

static bool is_split(const struct framework_range *range)
{
	return range && (range->count || range->is_segment);
}

static bool wants_kind(const struct rows *rows, unsigned kind)
{
	return kind < CUF_KIND_MAX && rows->filter.kinds >> kind & 1;
}

/* Blocks of the driver that are no ranges of addresses. */
static bool is_plain_kind(const struct rows *rows, unsigned kind)
{
	return kind != CUF_KIND_VMM && kind != CUF_KIND_MAPPING && kind != CUF_KIND_FRAMEWORK &&
	       wants_kind(rows, kind);
}

static struct segment_row split_row(const struct framework_map *map,
				    const struct framework_range *range,
				    struct segment_block *blocks)
{
	struct segment_row row = { range->addr, range->bytes, range->stack, true,
				   range->kind == CUF_KIND_MAPPING, blocks, range->count };

	for (size_t i = 0; i < range->count; i++) {
		const struct framework_block *block = &map->blocks[range->first + i];

		blocks[i] = (struct segment_block){ block->addr, block->bytes, block->stack };
	}
	return row;
}

static void see_ranges(const struct rows *rows, const struct framework_map *map,
		       void (*see)(void *context, const struct segment_row *row), void *context)
{
	struct segment_block *blocks = xalloc_zeroed(map->block_count, sizeof *blocks);

	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *range = &map->ranges[i];
		struct segment_row row = { .addr = range->addr, .bytes = range->bytes,
					   .stack = range->stack };

		if (is_split(range))
			row = split_row(map, range, blocks);
		else if (range->kind != CUF_KIND_MAPPING || !wants_kind(rows, CUF_KIND_VMM))
			continue;
		see(context, &row);
	}
	free(blocks);
}

void rows_segments(struct rows *rows, uint32_t process, unsigned ordinal,
		   void (*see)(void *context, const struct segment_row *row), void *context)
{
	struct run_process *recorded = &rows->run->processes[process];
	uint64_t seq = rows->facts->processes[process].live.device_seq[ordinal];
	struct framework_marks *marks = NULL;
	struct framework_map map;
	bool exact;
	const struct liveset *live = run_live(recorded, seq, &exact);
	size_t at = 0;

	framework_map_make(&(struct device_blocks){ recorded->reader, live, ordinal, process },
			   &map);
	framework_marks_set(&marks, recorded, &map);
	see_ranges(rows, &map, see, context);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (block->device == ordinal && is_plain_kind(rows, block->kind) && block->bytes &&
		    block->bytes < (uint64_t)1 << CUF_KEY_SHIFT &&
		    !is_split(range_at(&map, cuf_key_addr(block->key))))
			see(context, &(struct segment_row){ .addr = cuf_key_addr(block->key),
							    .bytes = block->bytes,
							    .stack = block->stack });
	framework_map_fini(&map);
	framework_marks_free(marks);
}
