/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts blocks into ranges by address; decides nothing. */
#include "analysis/measure/framework_map.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"

/* A framework may split any of these, and requests at least this much. Its address ranges follow
 * from MAPPING. */
#define SEGMENT_BYTES_MIN (1ull << 20)

static bool may_be_segment(const struct cuf_block *block)
{
	return block->bytes >= SEGMENT_BYTES_MIN &&
	       1u << block->kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED |
				    1u << CUF_KIND_ASYNC | 1u << CUF_KIND_IMPORTED);
}

/* Bytes of a block, cut at the end of the address space, so that ends cannot overflow. */
static uint64_t cut_bytes(uint64_t addr, uint64_t bytes)
{
	uint64_t most = ((uint64_t)1 << CUF_KEY_SHIFT) - addr;
	return least_of(bytes, most);
}

/* Splits the live set of the device into the framework's blocks and ranges that may hold them. */
static void collect_ranges(const struct device_blocks *blocks, struct framework_map *map,
			   size_t *range_room)
{
	size_t at = 0, block_room = 0;
	for (const struct cuf_block *block; (block = liveset_next(blocks->live, &at));) {
		uint64_t addr = cuf_key_addr(block->key), bytes = cut_bytes(addr, block->bytes);
		if (block->device != blocks->device || !bytes ||
		    (block->flags & CUF_EVENT_HOST_LOCATION))
			continue;
		if (block->kind == CUF_KIND_FRAMEWORK) {
			xalloc_grow(&map->blocks, map->block_count, &block_room,
				    sizeof *map->blocks);
			map->blocks[map->block_count++] = (struct framework_block){
				addr,		bytes,
				block->time_ns, reader_call_site(blocks->reader, block->stack),
				FACT_NONE,	block->role
			};
		} else if (may_be_segment(block)) {
			xalloc_grow(&map->ranges, map->range_count, range_room,
				    sizeof *map->ranges);
			map->ranges[map->range_count++] =
				(struct framework_range){ .addr = addr,
							  .bytes = bytes,
							  .seq = block->seq,
							  .time_ns = block->time_ns,
							  .stack = reader_call_site(blocks->reader,
										    block->stack),
							  .kind = block->kind };
		}
	}
	sort_by_number(map->blocks, map->block_count, sizeof *map->blocks,
		       offsetof(struct framework_block, addr));
}

/* The reservation that has an address; NULL: none. Reservations do not overlap. */
static const struct span *reservation_of(const struct span *all, size_t count, uint64_t addr)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (all[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - all[low - 1].addr >= all[low - 1].bytes)
		return NULL;
	return &all[low - 1];
}

/* Adjacent mappings inside one reservation are one run: an expandable segment is mapped piece by
 * piece. */
static void collect_runs(const struct device_blocks *blocks, struct framework_map *map,
			 size_t *range_room)
{
	size_t count, map_count;
	struct span *reservations =
		holes_collect(blocks->live, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, &count);
	struct span *maps =
		holes_collect(blocks->live, CUF_KIND_MAPPING, blocks->device, &map_count);
	struct framework_range *run = NULL;
	for (size_t i = 0; i < map_count; i++) {
		const struct span *in = reservation_of(reservations, count, maps[i].addr);
		uint64_t bytes = cut_bytes(maps[i].addr, maps[i].bytes), home = 0;
		uint32_t stack = maps[i].stack;
		const struct cuf_block *block =
			liveset_find(blocks->live, cuf_key(CUF_SPACE_MAPPING, maps[i].addr));
		if (in) { /* who reserved the addresses is the same for all pieces */
			home = in->addr;
			stack = in->stack;
		}
		if (run && run->reservation == home && run->addr + run->bytes == maps[i].addr) {
			run->bytes += bytes;
			run->grows = true;
			run->piece_bytes = most_of(bytes, run->piece_bytes);
			continue;
		}
		xalloc_grow(&map->ranges, map->range_count, range_room, sizeof *map->ranges);
		run = &map->ranges[map->range_count++];
		*run = (struct framework_range){
			.addr = maps[i].addr,
			.bytes = bytes,
			.stack = reader_call_site(blocks->reader, stack),
			.kind = CUF_KIND_MAPPING,
			.reservation = home,
			.piece_bytes = bytes,
			.grows = in && in->bytes > bytes
		};
		if (block) {
			run->seq = block->seq;
			run->time_ns = block->time_ns;
		}
	}
	free(reservations);
	free(maps);
}

/* The last range that starts at or before an address; SIZE_MAX: none. */
static size_t range_before(const struct framework_map *map, uint64_t addr)
{
	size_t low = 0, high = map->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (map->ranges[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* Assigns each block to the range that contains all of it. A block that crosses the end of its
 * range stays in none: it would make the range's free bytes negative. */
static void place(struct framework_map *map)
{
	for (size_t i = 0; i < map->block_count; i++) {
		struct framework_block *block = &map->blocks[i];
		size_t at = range_before(map, block->addr);
		if (at == SIZE_MAX)
			continue;
		struct framework_range *range = &map->ranges[at];
		if (block->addr - range->addr >= range->bytes ||
		    block->bytes > range->bytes - (block->addr - range->addr))
			continue;
		block->range = (uint32_t)at;
		if (!range->count++)
			range->first = i;
		range->live_bytes += block->bytes;
	}
}

void framework_map_make(const struct device_blocks *blocks, struct framework_map *out)
{
	size_t range_room = 0;
	*out = (struct framework_map){ 0 };
	collect_ranges(blocks, out, &range_room);
	collect_runs(blocks, out, &range_room);
	/* by address, then by age */
	sort_by_number(out->ranges, out->range_count, sizeof *out->ranges,
		       offsetof(struct framework_range, seq));
	sort_by_number(out->ranges, out->range_count, sizeof *out->ranges,
		       offsetof(struct framework_range, addr));
	place(out);
}

void framework_map_fini(struct framework_map *map)
{
	free(map->blocks);
	free(map->ranges);
	*map = (struct framework_map){ 0 };
}
