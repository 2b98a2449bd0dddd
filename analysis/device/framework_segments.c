/* SPDX-License-Identifier: Apache-2.0 */
/* Holes, pool classes and pins of segments. */
#include "analysis/device/framework_segments.h"

#include <stdlib.h>
#include <uthash.h>

/*
 * PyTorch's native allocator (c10/cuda/CUDACachingAllocator.cpp): requests of up to 1 MiB are cut from segments of 2 MiB,
 * larger ones from segments of 20 MiB and more, and neither pool serves the other's requests.
 */
#define SMALL_REQUEST (1ull << 20)
#define SMALL_SEGMENT (2ull << 20)
#define SPARSE_PART 10 /* used by less than a tenth */

struct pinning { uint32_t stack; uint64_t segments, open_bytes, bytes, count, last_segment; UT_hash_handle hh; };

/* A block's size tells the pool of a segment that grows, which is mapped in pieces of any size. */
static bool is_small_pool(const struct framework_map *map, const struct framework_range *r)
{
	if (!r->grows)
		return r->bytes <= SMALL_SEGMENT;
	if (r->count)
		return map->blocks[r->first].bytes <= SMALL_REQUEST;
	return r->piece_bytes <= SMALL_SEGMENT;
}

static void see_hole(struct fact_segment *s, uint64_t bytes)
{
	s->hole_count++;
	if (bytes > s->largest_hole_bytes)
		s->largest_hole_bytes = bytes;
}

/* A range's own blocks, in order of address: those of ranges that overlap it (damage) are not its own. */
static void measure_holes(const struct framework_map *map, uint32_t range, struct fact_segment *s)
{
	const struct framework_range *r = &map->ranges[range];
	uint64_t at = r->addr, end = r->addr + r->bytes;
	size_t left = r->count;
	for (size_t i = r->first; left && i < map->block_count; i++) {
		const struct framework_block *b = &map->blocks[i];
		if (b->range != range)
			continue;
		left--;
		if (b->addr > at)
			see_hole(s, b->addr - at);
		at = b->addr + b->bytes > at ? b->addr + b->bytes : at;
	}
	if (end > at)
		see_hole(s, end - at);
}

static void blame(struct pinning **sites, uint32_t range, const struct framework_block *b, uint64_t open_bytes)
{
	struct pinning *site;
	HASH_FIND(hh, *sites, &b->stack, sizeof b->stack, site);
	if (!site) {
		site = xalloc_zeroed(1, sizeof *site);
		site->stack = b->stack;
		HASH_ADD(hh, *sites, stack, sizeof site->stack, site);
	}
	site->bytes += b->bytes;
	site->count++;
	if (site->last_segment != (uint64_t)range + 1) {
		site->last_segment = (uint64_t)range + 1;
		site->segments++;
		site->open_bytes += open_bytes;
	}
}

static void blame_blocks(const struct framework_map *map, uint32_t range, struct pinning **sites)
{
	const struct framework_range *r = &map->ranges[range];
	size_t left = r->count;
	if (r->live_bytes >= r->bytes)
		return;
	for (size_t i = r->first; left && i < map->block_count; i++)
		if (map->blocks[i].range == range) {
			blame(sites, range, &map->blocks[i], r->bytes - r->live_bytes);
			left--;
		}
}

static int by_open_bytes(const void *a, const void *b)
{
	const struct fact_pin *x = a, *y = b;
	if (x->open_bytes != y->open_bytes)
		return x->open_bytes > y->open_bytes ? -1 : 1;
	return x->stack.id < y->stack.id ? -1 : x->stack.id > y->stack.id;
}

static void settle_pins(struct pinning *sites, uint32_t process, struct arena *arena, struct fact_framework *out)
{
	struct fact_pin *pins = arena_zeroed(arena, HASH_COUNT(sites), sizeof *pins);
	struct pinning *site, *next;
	HASH_ITER(hh, sites, site, next) {
		pins[out->pin_count++] = (struct fact_pin){ { .process = process, .id = site->stack }, site->segments, site->open_bytes, site->bytes, site->count };
		HASH_DEL(sites, site);
		free(site);
	}
	if (out->pin_count)
		qsort(pins, out->pin_count, sizeof *pins, by_open_bytes);
	out->pins = pins;
}

static int by_free_bytes(const void *a, const void *b)
{
	const struct fact_segment *x = a, *y = b;
	uint64_t free_x = x->bytes - x->live_bytes, free_y = y->bytes - y->live_bytes;
	if (free_x != free_y)
		return free_x > free_y ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct fact_segment segment_of(const struct framework_map *map, uint32_t range, uint32_t process)
{
	const struct framework_range *r = &map->ranges[range];
	bool small = is_small_pool(map, r);
	struct fact_segment s = { .process = process, .addr = r->addr, .bytes = r->bytes,
		.live_bytes = r->live_bytes < r->bytes ? r->live_bytes : r->bytes, .live_count = r->count,
		.serves_least_bytes = small ? 1 : SMALL_REQUEST + 1, .serves_most_bytes = small ? SMALL_REQUEST : CUF_UNKNOWN,
		.expandable = r->grows, .born_ns = r->time_ns, .stack = { .process = process, .id = r->stack } };
	measure_holes(map, range, &s);
	return s;
}

static bool could_serve(const struct fact_segment *s, uint64_t requested_bytes)
{
	return requested_bytes == CUF_UNKNOWN || (requested_bytes >= s->serves_least_bytes && requested_bytes <= s->serves_most_bytes);
}

uint64_t framework_segments_measure(const struct framework_map *map, uint32_t process, uint64_t requested_bytes, struct arena *arena,
				    struct fact_framework *out)
{
	struct fact_segment *rows = arena_zeroed(arena, map->range_count, sizeof *rows);
	struct pinning *sites = NULL;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < map->range_count; i++) {
		const struct framework_range *r = &map->ranges[i];
		struct fact_segment *s = &rows[out->segment_count];
		if (!r->is_segment)
			continue;
		*s = segment_of(map, i, process);
		out->segment_count++;
		bytes += s->bytes;
		out->placed_bytes += s->live_bytes;
		if (!r->count)
			out->empty_bytes += s->bytes;
		else if (s->live_bytes < s->bytes / SPARSE_PART)
			out->emptyable_bytes += s->bytes;
		if (could_serve(s, requested_bytes) && s->largest_hole_bytes > out->largest_hole.bytes)
			out->largest_hole.bytes = s->largest_hole_bytes;
		blame_blocks(map, i, &sites);
	}
	settle_pins(sites, process, arena, out);
	if (out->segment_count)
		qsort(rows, out->segment_count, sizeof *rows, by_free_bytes);
	out->segments = rows;
	return bytes;
}
