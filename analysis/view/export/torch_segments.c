/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a snapshot: ranges of memory that a framework splits, with its blocks and the
 * gaps between them, and every other block of the driver as a segment of one block. Memory of the
 * virtual memory calls is shown where it is mapped.
 */
#include "analysis/view/export/torch_snapshot.h"

#include "analysis/base/numbers.h"
#include "analysis/device/framework_segments.h"
#include "analysis/explain/facts_build.h"

/* PyTorch's blocks of up to this size come from its pool of small ones. */
#define SMALL_SEGMENT_BYTES (2ull << 20)

/* site 0 of a gap: it has no frames */
static void put_block(struct torch *torch, uint64_t addr, uint64_t bytes, bool active,
		      uint32_t site)
{
	struct pickle *pickle = &torch->pickle;

	pickle_begin_dict(pickle);
	torch_put(torch, "address", addr);
	torch_put(torch, "size", bytes);
	torch_put(torch, "requested_size", active ? bytes : 0);
	pickle_word(pickle, "state");
	pickle_word(pickle, active ? "active_allocated" : "inactive");
	pickle_word(pickle, "frames");
	torch_frames(torch, site);
	pickle_end_dict(pickle);
}

struct segment {
	uint64_t addr, bytes, active_bytes;
	uint32_t site;
	bool expandable;
};

static void begin_segment(struct torch *torch, const struct segment *segment)
{
	struct pickle *pickle = &torch->pickle;

	pickle_begin_dict(pickle);
	torch_put(torch, "device", torch->ordinal);
	torch_put(torch, "address", segment->addr);
	torch_put(torch, "total_size", segment->bytes);
	torch_put(torch, "allocated_size", segment->active_bytes);
	torch_put(torch, "active_size", segment->active_bytes);
	torch_put(torch, "requested_size", segment->active_bytes);
	torch_put(torch, "stream", 0); /* not recorded */
	pickle_word(pickle, "segment_type");
	pickle_word(pickle, segment->bytes <= SMALL_SEGMENT_BYTES ? "small" : "large");
	pickle_word(pickle, "segment_pool_id");
	pickle_pair(pickle, 0, 0);
	pickle_word(pickle, "is_expandable");
	pickle_bool(pickle, segment->expandable);
	pickle_word(pickle, "frames");
	torch_frames(torch, segment->site);
	pickle_word(pickle, "blocks");
	pickle_begin_list(pickle);
}

static void end_segment(struct torch *torch)
{
	pickle_end_list(&torch->pickle);
	pickle_end_dict(&torch->pickle);
}

/* Blocks and gaps fill a segment. Overlapping blocks are damage: the later one is cut. */
static void put_segment(struct torch *torch, const struct framework_map *map,
			const struct framework_range *range)
{
	struct segment segment = { range->addr, range->bytes, 0,
				   rows_site_of_stack(torch->rows, torch->process, range->stack),
				   range->kind == CUF_KIND_MAPPING };
	uint64_t at = range->addr, end = range->addr + range->bytes;

	for (size_t i = range->first; i < range->first + range->count; i++)
		segment.active_bytes += map->blocks[i].bytes;
	begin_segment(torch, &segment);
	for (size_t i = range->first; i < range->first + range->count; i++) {
		const struct framework_block *block = &map->blocks[i];

		if (block->addr < at)
			continue;
		if (block->addr > at)
			put_block(torch, at, block->addr - at, false, 0);
		put_block(torch, block->addr, block->bytes, true,
			  rows_site_of_stack(torch->rows, torch->process, block->stack));
		at = block->addr + block->bytes;
	}
	if (at < end)
		put_block(torch, at, end - at, false, 0);
	end_segment(torch);
}

static void put_plain(struct torch *torch, uint64_t addr, uint64_t bytes, uint32_t stack)
{
	uint32_t site = rows_site_of_stack(torch->rows, torch->process, stack);

	begin_segment(torch, &(struct segment){ addr, bytes, bytes, site, false });
	put_block(torch, addr, bytes, true, site);
	end_segment(torch);
}

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

/* Blocks of the driver that are no ranges of addresses. */
static bool is_plain_kind(const struct torch *torch, unsigned kind)
{
	return kind != CUF_KIND_VMM && kind != CUF_KIND_MAPPING && kind != CUF_KIND_FRAMEWORK &&
	       torch_has_kind(torch, kind);
}

static void put_device(struct torch *torch, struct run_process *recorded, uint64_t seq)
{
	struct framework_marks *marks = NULL;
	struct framework_map map;
	bool exact, mapped = torch_has_kind(torch, CUF_KIND_VMM);
	const struct liveset *live = run_live(recorded, seq, &exact);
	size_t at = 0;

	framework_map_make(&(struct device_blocks){ recorded->reader, live, torch->ordinal,
						    torch->process }, &map);
	framework_marks_set(&marks, recorded, &map);
	for (size_t i = 0; i < map.range_count; i++) {
		const struct framework_range *range = &map.ranges[i];

		if (is_split(range))
			put_segment(torch, &map, range);
		else if (range->kind == CUF_KIND_MAPPING && mapped)
			put_plain(torch, range->addr, range->bytes, range->stack);
	}
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (block->device == torch->ordinal && is_plain_kind(torch, block->kind) &&
		    block->bytes && block->bytes < (uint64_t)1 << CUF_KEY_SHIFT &&
		    !is_split(range_at(&map, cuf_key_addr(block->key))))
			put_plain(torch, cuf_key_addr(block->key), block->bytes, block->stack);
	framework_map_fini(&map);
	framework_marks_free(marks);
}

void torch_put_segments(struct torch *torch)
{
	const struct facts *facts = rows_facts(torch->rows);
	const struct fact_process *process = &facts->processes[torch->process];
	struct run_process *recorded = &facts_run(facts)->processes[torch->process];

	pickle_begin_list(&torch->pickle);
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		if (process->device_of[d] == FACT_NONE || !process->live.device_seq[d] ||
		    !rows_want_device(torch->rows, process->device_of[d]))
			continue;
		torch->ordinal = d;
		put_device(torch, recorded, process->live.device_seq[d]);
	}
	pickle_end_list(&torch->pickle);
}
