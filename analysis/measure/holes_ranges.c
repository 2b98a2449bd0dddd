/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps between the blocks of a pool, and unmapped ranges inside reservations. */
#include "analysis/measure/holes.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/sort.h"

/* The largest gap between the blocks [from, to) of a pool, sorted by address. A gap larger than the
 * slack of the pool is not its memory. */
static uint64_t largest_gap(const struct span *blocks, size_t from, size_t to, uint64_t slack_bytes)
{
	uint64_t largest = 0, end = 0;
	if (to - from < 2)
		return CUF_UNKNOWN;
	for (size_t i = from; i < to; i++) {
		uint64_t at = blocks[i].addr, behind;
		if (i > from && at > end && at - end <= slack_bytes && at - end > largest)
			largest = at - end;
		if (__builtin_add_overflow(at, blocks[i].bytes, &behind))
			behind = UINT64_MAX;
		end = most_of(behind, end);
	}
	return largest;
}

/*
 * Completes the row of one pool from its blocks [from, to). fresh: the driver reported the pool
 * after its last change. An older report can be below what the blocks need, so it is raised.
 */
static void measure_pool(struct fact_pool *pool, const struct span *blocks, size_t from, size_t to,
			 bool fresh)
{
	uint64_t slack = CUF_UNKNOWN;
	for (size_t i = from; i < to; i++)
		pool->live_bytes += blocks[i].bytes;
	pool->live_count = to - from;
	if (pool->used_bytes == CUF_UNKNOWN || !fresh) /* the report is older than the last block */
		pool->used_bytes = pool->live_bytes;
	if (pool->reserved_bytes != CUF_UNKNOWN && pool->reserved_bytes < pool->used_bytes)
		pool->reserved_bytes = pool->used_bytes;
	if (pool->reserved_bytes != CUF_UNKNOWN)
		slack = subtract_to_zero(pool->reserved_bytes, pool->live_bytes);
	pool->largest_gap_bytes = largest_gap(blocks, from, to, slack);
	pool->basis = BASIS_ESTIMATED;
	if (fresh)
		pool->basis = BASIS_OBSERVED;
}

/* The blocks of one pool are a run in the sorted array. */
static bool blocks_of(const struct span *blocks, size_t count, uint64_t pool, size_t *from,
		      size_t *to)
{
	for (*from = 0; *from < count && blocks[*from].aux != pool; ++*from)
		;
	for (*to = *from; *to < count && blocks[*to].aux == pool; ++*to)
		;
	return *to > *from;
}

void holes_pools(const struct device_blocks *device, const struct pool_level *levels,
		 size_t level_count, struct arena *arena, struct fact_fragmentation *out)
{
	size_t count, pools = 0, from, to;
	struct span *blocks = holes_collect(device->live, CUF_KIND_ASYNC, device->device, &count);
	struct fact_pool *rows;
	for (size_t i = 0; i < count; i++)
		pools += !i || blocks[i].aux != blocks[i - 1].aux;
	rows = arena_zeroed(arena, pools + level_count, sizeof *rows);
	pools = 0;
	for (size_t i = 0; i < level_count; i++) {
		const struct pool_level *level = &levels[i];
		blocks_of(blocks, count, level->pool, &from, &to);
		rows[pools] = (struct fact_pool){ .process = device->process,
						  .pool = level->pool,
						  .reserved_bytes = level->reserved_bytes,
						  .used_bytes = level->used_bytes,
						  .threshold_bytes = level->threshold_bytes };
		measure_pool(&rows[pools++], blocks, from, to, level->fresh);
	}
	/* pools that have blocks but no report of the driver */
	for (from = 0; from < count; from = to) {
		bool known = false;
		for (to = from + 1; to < count && blocks[to].aux == blocks[from].aux; to++)
			;
		for (size_t i = 0; i < level_count; i++)
			known |= levels[i].pool == blocks[from].aux;
		if (known)
			continue;
		rows[pools] = (struct fact_pool){ .process = device->process,
						  .pool = blocks[from].aux,
						  .reserved_bytes = CUF_UNKNOWN,
						  .used_bytes = CUF_UNKNOWN,
						  .threshold_bytes = CUF_UNKNOWN };
		measure_pool(&rows[pools++], blocks, from, to, false);
	}
	out->pools = rows;
	out->pool_count = pools;
	free(blocks);
}

/*
 * Mappings are sorted by address. What they leave of the reservation is unmapped. Those outside of
 * it are skipped, which only damage causes. *ours: the reservation belongs to this device.
 */
static void measure_reservation(struct fact_vmm *row, const struct span *maps, size_t count,
				unsigned device, bool *ours)
{
	uint64_t at = row->addr, end = row->addr + row->bytes;
	bool foreign = false;
	for (size_t i = 0; i < count; i++) {
		uint64_t start = maps[i].addr, stop = start + maps[i].bytes;
		if (start < row->addr || start >= end || stop < start)
			continue;
		stop = least_of(stop, end);
		if (start > at && start - at > row->largest_unmapped_bytes)
			row->largest_unmapped_bytes = start - at;
		at = most_of(stop, at);
		row->mapped_bytes += stop - start;
		row->map_count++;
		*ours |= maps[i].device == device;
		foreign |= maps[i].device != device && maps[i].device != CUF_DEVICE_NONE;
	}
	if (end - at > row->largest_unmapped_bytes)
		row->largest_unmapped_bytes = end - at;
	*ours |= !foreign; /* reserved addresses belong to no device before something is mapped */
}

/* The first mapping at or behind an address. */
static size_t first_map(const struct span *maps, size_t count, uint64_t addr)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (maps[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_aux(const void *a, const void *b)
{
	const struct span *left = a, *right = b;
	return compare_numbers(left->aux, right->aux);
}

/* Physical memory that no mapping refers to is held but unused. Sorts maps by handle, so the
 * caller must have finished with their order by address. */
static void measure_handles(const struct liveset *live, unsigned device, struct span *maps,
			    size_t map_count, struct fact_fragmentation *out)
{
	size_t count;
	struct span *handles = holes_collect(live, CUF_KIND_VMM, device, &count);
	sort_by_number(maps, map_count, sizeof *maps, offsetof(struct span, aux));
	for (size_t i = 0; i < count; i++) {
		struct span key = { .aux = handles[i].addr };
		out->vmm_held_bytes += handles[i].bytes;
		if (map_count && bsearch(&key, maps, map_count, sizeof *maps, by_aux))
			out->vmm_mapped_bytes += handles[i].bytes;
		else
			out->vmm_unmapped_bytes += handles[i].bytes;
	}
	free(handles);
}

void holes_vmm(const struct device_blocks *blocks, struct arena *arena,
	       struct fact_fragmentation *out)
{
	size_t count, map_count;
	struct span *reservations =
		holes_collect(blocks->live, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, &count);
	struct span *maps =
		holes_collect(blocks->live, CUF_KIND_MAPPING, CUF_DEVICE_NONE, &map_count);
	struct fact_vmm *rows = arena_zeroed(arena, count, sizeof *rows);
	for (size_t i = 0; i < count; i++) {
		uint64_t addr = reservations[i].addr, most = ((uint64_t)1 << CUF_KEY_SHIFT) - addr,
			 end = CUF_UNKNOWN;
		struct fact_vmm row = {
			.process = blocks->process,
			.addr = addr,
			.bytes = least_of(reservations[i].bytes, most),
			.stack = { .process = blocks->process,
				   .id = reader_call_site(blocks->reader, reservations[i].stack) }
		};
		size_t from, to;
		bool ours = false;
		/* Each mapping is in one reservation. Only damage makes them overlap, and then it
		 * is in the last one that begins before it. */
		if (i + 1 < count)
			end = reservations[i + 1].addr;
		from = first_map(maps, map_count, addr);
		to = first_map(maps, map_count, least_of(addr + row.bytes, end));
		measure_reservation(&row, map_count ? maps + from : NULL, to - from, blocks->device,
				    &ours);
		if (ours)
			rows[out->vmm_count++] = row;
	}
	out->vmm = rows;
	measure_handles(blocks->live, blocks->device, maps, map_count, out);
	free(reservations);
	free(maps);
}

/* ---- rounding ---- */

/* Splits the blocks of a device: pages that hold a small one, and what the last page of a large one
 * does not use. Heap memory, which the caller frees. */
struct rounding { uint64_t page, bytes; };
struct rounded {
	uint64_t *shared; size_t shared_count, shared_room;
	struct rounding *large; size_t large_count, large_room;
};

static void split_blocks(const struct liveset *live, unsigned ordinal, struct rounded *out)
{
	size_t at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		uint64_t addr = cuf_key_addr(block->key);

		if (block->kind != CUF_KIND_DEVICE || block->device != ordinal)
			continue;
		if (block->bytes <= CUF_PAGE_BYTES / 2) {
			uint64_t page = addr / CUF_PAGE_BYTES;

			/* neighbours share a page */
			if (out->shared_count && out->shared[out->shared_count - 1] == page)
				continue;
			xalloc_grow(&out->shared, out->shared_count, &out->shared_room,
				    sizeof *out->shared);
			out->shared[out->shared_count++] = page;
		} else if (block->bytes % CUF_PAGE_BYTES) {
			xalloc_grow(&out->large, out->large_count, &out->large_room,
				    sizeof *out->large);
			out->large[out->large_count++] = (struct rounding){
				(addr + block->bytes - 1) / CUF_PAGE_BYTES,
				CUF_PAGE_BYTES - block->bytes % CUF_PAGE_BYTES
			};
		}
	}
	sort_by_number(out->shared, out->shared_count, sizeof *out->shared, 0);
}

uint64_t holes_rounded(const struct liveset *live, unsigned device)
{
	struct rounded all = { 0 };
	uint64_t bytes = 0;

	split_blocks(live, device, &all);
	for (size_t i = 0; i < all.large_count; i++)
		if (!all.shared_count || !bsearch(&all.large[i].page, all.shared, all.shared_count,
						  sizeof *all.shared, compare_uint64))
			bytes += all.large[i].bytes;
	free(all.shared);
	free(all.large);
	return bytes;
}
