/* SPDX-License-Identifier: Apache-2.0 */
/* Holes, pools and pins of segments. */
#include "analysis/measure/framework_segments.h"

#include <stdlib.h>
#include <uthash.h>
#include "analysis/base/numbers.h"
#include "analysis/measure/holes.h"

/*
 * PyTorch's native allocator (c10/cuda/CUDACachingAllocator.cpp) serves requests of up to 1 MiB
 * from segments of 2 MiB and larger ones from segments of 20 MiB and more. Neither pool serves
 * requests of the other.
 */
#define SMALL_REQUEST (1ull << 20)
#define SMALL_SEGMENT (2ull << 20)
#define SPARSE_PART 10 /* used by less than a tenth */

/* A call site with blocks in segments that are not full. */
struct pinning {
	uint32_t stack;
	uint64_t segments;
	uint64_t open_bytes;   /* free bytes in those segments */
	uint64_t bytes;        /* of its blocks in them */
	uint64_t count;
	uint64_t last_segment; /* index of the range counted last, plus 1; 0: none yet */
	UT_hash_handle hh;
};

/* A segment that grows is mapped in pieces of any size, so the size of its first block decides. */
static bool is_small_pool(const struct framework_map *map, const struct framework_range *range)
{
	if (!range->grows)
		return range->bytes <= SMALL_SEGMENT;
	if (range->count)
		return map->blocks[range->first].bytes <= SMALL_REQUEST;
	return range->piece_bytes <= SMALL_SEGMENT;
}

static void count_hole(struct fact_segment *segment, uint64_t bytes)
{
	segment->hole_count++;
	if (bytes > segment->largest_hole_bytes)
		segment->largest_hole_bytes = bytes;
}

/* The blocks of a range in order of address. Ranges overlap only in damaged recordings; blocks of
 * another range are skipped. */
static void measure_holes(const struct framework_map *map, uint32_t range,
			  struct fact_segment *segment)
{
	const struct framework_range *whole = &map->ranges[range];
	uint64_t at = whole->addr, end = whole->addr + whole->bytes;
	size_t left = whole->count;
	for (size_t i = whole->first; left && i < map->block_count; i++) {
		const struct framework_block *block = &map->blocks[i];
		if (block->range != range)
			continue;
		left--;
		if (block->addr > at)
			count_hole(segment, block->addr - at);
		at = most_of(block->addr + block->bytes, at);
	}
	if (end > at)
		count_hole(segment, end - at);
}

/* Each segment counts once for each call site that has a block in it. */
static void add_pin(struct pinning **sites, uint32_t range, const struct framework_block *block,
		  uint64_t open_bytes)
{
	struct pinning *site;
	HASH_FIND(hh, *sites, &block->stack, sizeof block->stack, site);
	if (!site) {
		site = xalloc_zeroed(1, sizeof *site);
		site->stack = block->stack;
		HASH_ADD(hh, *sites, stack, sizeof site->stack, site);
	}
	site->bytes += block->bytes;
	site->count++;
	if (site->last_segment != (uint64_t)range + 1) {
		site->last_segment = (uint64_t)range + 1;
		site->segments++;
		site->open_bytes += open_bytes;
	}
}

/* A full segment is skipped: it has no free bytes that a site could pin. */
static void blame_blocks(const struct framework_map *map, uint32_t range, struct pinning **sites)
{
	const struct framework_range *whole = &map->ranges[range];
	size_t left = whole->count;
	if (whole->live_bytes >= whole->bytes)
		return;
	for (size_t i = whole->first; left && i < map->block_count; i++)
		if (map->blocks[i].range == range) {
			add_pin(sites, range, &map->blocks[i], whole->bytes - whole->live_bytes);
			left--;
		}
}

/* Moves the sites from the hash to the arena, as sorted rows. */
static void settle_pins(struct pinning *sites, uint32_t process, struct arena *arena,
			struct fact_framework *out)
{
	struct fact_pin *pins = arena_zeroed(arena, HASH_COUNT(sites), sizeof *pins);
	struct pinning *site, *next;
	HASH_ITER(hh, sites, site, next) {
		pins[out->pin_count++] =
			(struct fact_pin){ { .process = process, .id = site->stack },
					   site->segments,
					   site->open_bytes,
					   site->bytes,
					   site->count };
		HASH_DEL(sites, site);
		free(site);
	}
	if (out->pin_count)
		qsort(pins, out->pin_count, sizeof *pins,
		      pins_by_open_bytes);
	out->pins = pins;
}

/* The segment with most free bytes first, since a report shows only the first few. */
static int by_free_bytes(const void *a, const void *b)
{
	const struct fact_segment *left = a, *right = b;
	uint64_t free_x = left->bytes - left->live_bytes, free_y = right->bytes - right->live_bytes;
	if (free_x != free_y)
		return compare_numbers(free_y, free_x);
	return compare_numbers(left->addr, right->addr);
}

static struct fact_segment segment_of(const struct framework_map *map, uint32_t range,
				      uint32_t process)
{
	const struct framework_range *from = &map->ranges[range];
	struct fact_segment segment = { .process = process,
					.addr = from->addr,
					.bytes = from->bytes,
					.live_bytes = least_of(from->live_bytes, from->bytes),
					.live_count = from->count,
					.serves_least_bytes = SMALL_REQUEST + 1,
					.serves_most_bytes = CUF_UNKNOWN,
					.expandable = from->grows,
					.born_ns = from->time_ns,
					.stack = { .process = process, .id = from->stack } };
	if (is_small_pool(map, from)) {
		segment.serves_least_bytes = 1;
		segment.serves_most_bytes = SMALL_REQUEST;
	}
	measure_holes(map, range, &segment);
	return segment;
}

/* Whether the pool of this segment serves requests of this size, not whether it has room. */
static bool could_serve(const struct fact_segment *segment, uint64_t requested_bytes)
{
	return requested_bytes == CUF_UNKNOWN || (requested_bytes >= segment->serves_least_bytes &&
						  requested_bytes <= segment->serves_most_bytes);
}

uint64_t framework_segments_measure(const struct framework_map *map, uint32_t process,
				    uint64_t requested_bytes, struct arena *arena,
				    struct fact_framework *out)
{
	struct fact_segment *rows = arena_zeroed(arena, map->range_count, sizeof *rows);
	struct pinning *sites = NULL;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < map->range_count; i++) {
		const struct framework_range *range = &map->ranges[i];
		struct fact_segment *segment = &rows[out->segment_count];
		if (!range->is_segment)
			continue;
		*segment = segment_of(map, i, process);
		out->segment_count++;
		bytes += segment->bytes;
		out->placed_bytes += segment->live_bytes;
		if (!range->count)
			out->empty_bytes += segment->bytes;
		else if (segment->live_bytes < segment->bytes / SPARSE_PART)
			out->emptyable_bytes += segment->bytes;
		if (could_serve(segment, requested_bytes) &&
		    segment->largest_hole_bytes > out->largest_hole.bytes)
			out->largest_hole.bytes = segment->largest_hole_bytes;
		blame_blocks(map, i, &sites);
	}
	settle_pins(sites, process, arena, out);
	if (out->segment_count)
		qsort(rows, out->segment_count, sizeof *rows, by_free_bytes);
	out->segments = rows;
	return bytes;
}
