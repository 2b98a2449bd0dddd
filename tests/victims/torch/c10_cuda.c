/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc10_cuda.so for torch_allocator: pools, segments, blocks, and the reports, called through the
 * PLT as in PyTorch.
 */
#include "tests/victims/torch/c10_cuda.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define MiB ((size_t)1 << 20)

enum { BLOCK_LEAST = 512, DEVICE = 0 };
static const size_t small_max = 1 * MiB, small_segment = 2 * MiB, large_least = 10 * MiB,
		    large_segment = 20 * MiB, large_round = 2 * MiB;

struct pool;

/* Blocks of one segment in order of address. In an expandable segment parts of the reservation are
 * not mapped: blocks, too. */
struct torch_block {
	RB_ENTRY(torch_block) by_size;   /* in its pool, while free and mapped */
	struct torch_block *before, *after; /* in its segment */
	struct pool *pool;
	CUdeviceptr addr;
	size_t bytes;
	bool allocated, mapped;
};
RB_HEAD(size_tree, torch_block);

static int compare_blocks(const struct torch_block *a, const struct torch_block *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}
RB_GENERATE_INTERNAL(size_tree, torch_block, by_size, compare_blocks,
                     static __attribute__((unused)))

enum { SEGMENTS_MAX = 65536, POOLS = 2 * TORCH_STREAMS };
static struct pool {
	bool small;
	struct size_tree free;
	struct torch_block *segments[SEGMENTS_MAX]; /* first blocks */
	unsigned segment_count;
	/* of the expandable segment, by index; 0 not mapped */
	CUmemGenericAllocationHandle *chunks;
	size_t chunk_bytes, chunk_count;
	CUdeviceptr reservation;
} pools[POOLS]; /* of stream i: small 2i, large 2i + 1 */
static unsigned stream;

static struct torch_settings set;
static struct torch_books books;
static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, DEVICE },
};
static const CUmemAccessDesc read_write = { { CU_MEM_LOCATION_TYPE_DEVICE, DEVICE }, 3 };

/* ---- reports ---- */

static void report(const struct torch_block *block, int64_t bytes)
{
	const struct c10_device device = { 1, DEVICE };
	void *ptr = (void *)(uintptr_t)block->addr;
	books.events++;
	if (set.silent)
		return;
	if (set.era == TORCH_3)
		C10_REPORT_3((void *)block, bytes, device);
	else if (set.era == TORCH_L)
		C10_REPORT_L(ptr, bytes, (int64_t)books.allocated, (int64_t)books.reserved, device);
	else
		C10_REPORT_M(ptr, bytes, books.allocated, books.reserved, device);
}

static void report_failure(size_t bytes)
{
	const struct c10_device device = { 1, DEVICE };
	if (set.silent || set.era == TORCH_3)
		return;
	if (set.era == TORCH_L)
		C10_OOM_L((int64_t)bytes, (int64_t)books.allocated, (int64_t)books.reserved,
		          device);
	else if (set.era == TORCH_M)
		C10_OOM_M((int64_t)bytes, books.allocated, books.reserved, device);
	else
		C10_OOM_MMM(bytes, books.allocated, books.reserved, device);
}

/* ---- blocks ---- */

static struct torch_block *new_block(struct pool *pool, CUdeviceptr addr, size_t bytes, bool mapped)
{
	struct torch_block *block = calloc(1, sizeof *block);
	if (!block)
		abort();
	block->pool = pool;
	block->addr = addr;
	block->bytes = bytes;
	block->mapped = mapped;
	return block;
}

/* Cuts the block behind `bytes`; returns the rest, which has its state. */
static struct torch_block *cut(struct torch_block *block, size_t bytes)
{
	struct torch_block *rest = new_block(block->pool, block->addr + bytes, block->bytes - bytes,
	                                     block->mapped);
	rest->before = block;
	rest->after = block->after;
	if (rest->after)
		rest->after->before = rest;
	block->after = rest;
	block->bytes = bytes;
	return rest;
}

/* A block takes over the one behind it. */
static void absorb(struct torch_block *block)
{
	struct torch_block *gone = block->after;
	block->bytes += gone->bytes;
	block->after = gone->after;
	if (block->after)
		block->after->before = block;
	free(gone);
}

static bool joins(const struct torch_block *a, const struct torch_block *b)
{
	return a && b && !a->allocated && !b->allocated && a->mapped == b->mapped;
}

static void leave_tree(struct torch_block *block)
{
	if (block->mapped)
		RB_REMOVE(size_tree, &block->pool->free, block);
}

/* A block became free, or mapped, or no longer mapped: joined with such neighbours and, if mapped,
 * found by its size again. */
static struct torch_block *settle(struct torch_block *block)
{
	if (joins(block, block->after)) {
		leave_tree(block->after);
		absorb(block);
	}
	if (joins(block->before, block)) {
		block = block->before;
		leave_tree(block);
		absorb(block);
	}
	if (block->mapped)
		RB_INSERT(size_tree, &block->pool->free, block);
	return block;
}

static void add_segment(struct pool *pool, struct torch_block *first)
{
	if (pool->segment_count == SEGMENTS_MAX)
		abort();
	pool->segments[pool->segment_count++] = first;
}

/* ---- segments of cudaMalloc ---- */

static size_t segment_bytes(size_t bytes)
{
	if (bytes <= small_max)
		return small_segment;
	return bytes < large_least ? large_segment
	                           : (bytes + large_round - 1) / large_round * large_round;
}

static bool is_capped(size_t bytes)
{
	return set.reserved_max && books.reserved + bytes > set.reserved_max;
}

static struct torch_block *take_segment(struct pool *pool, size_t bytes)
{
	struct torch_block *block;
	CUdeviceptr addr = 0;
	if (is_capped(bytes) || set.alloc(&addr, bytes))
		return NULL;
	block = new_block(pool, addr, bytes, true);
	add_segment(pool, block);
	books.reserved += bytes;
	return settle(block);
}

static void release_segments(struct pool *pool)
{
	for (unsigned i = 0; i < pool->segment_count;) {
		struct torch_block *block = pool->segments[i];
		if (block->allocated || block->after) {
			i++;
			continue;
		}
		leave_tree(block);
		if (set.release(block->addr))
			abort();
		books.reserved -= block->bytes;
		pool->segments[i] = pool->segments[--pool->segment_count];
		free(block);
	}
}

/* ---- expandable segments: one reservation a pool, mapped in chunks ---- */

static void open_reservation(struct pool *pool)
{
	size_t unused, total;
	if (set.memory(&unused, &total))
		abort();
	pool->chunk_bytes = pool->small ? small_segment : large_segment;
	pool->chunk_count = (total + total / 8) / pool->chunk_bytes;
	pool->chunks = calloc(pool->chunk_count, sizeof *pool->chunks);
	if (!pool->chunks ||
	    set.reserve(&pool->reservation, pool->chunk_count * pool->chunk_bytes, 0, 0, 0))
		abort();
	add_segment(pool, new_block(pool, pool->reservation, pool->chunk_count * pool->chunk_bytes,
	                            false));
}

/* All chunks or none: the first that cannot be had gives the others back. */
static bool map_chunks(struct pool *pool, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (set.create(&pool->chunks[i], pool->chunk_bytes, &on_device, 0)) {
			while (i-- > from)
				set.handle_release(pool->chunks[i]);
			return false;
		}
	for (size_t i = from; i < to; i++)
		if (set.map(pool->reservation + i * pool->chunk_bytes, pool->chunk_bytes, 0,
		            pool->chunks[i], 0))
			abort();
	return set.set_access(pool->reservation + from * pool->chunk_bytes,
	                      (to - from) * pool->chunk_bytes, &read_write, 1) == CUDA_SUCCESS;
}

/* Maps the first `bytes` of a block that is not mapped, rounded up to chunks. */
static struct torch_block *map_block(struct torch_block *block, size_t bytes)
{
	struct pool *pool = block->pool;
	size_t from = (block->addr - pool->reservation) / pool->chunk_bytes,
	       count = (bytes + pool->chunk_bytes - 1) / pool->chunk_bytes;
	if (!map_chunks(pool, from, from + count))
		return NULL;
	if (block->bytes > count * pool->chunk_bytes)
		cut(block, count * pool->chunk_bytes);
	block->mapped = true;
	books.reserved += block->bytes;
	return settle(block);
}

static bool has_room(const struct torch_block *block, size_t bytes)
{
	size_t room = 0;
	for (; room < bytes && block && !block->allocated; block = block->after)
		room += block->bytes;
	return room >= bytes;
}

/* The lowest addresses that are not mapped, with the free block before them, and all that is
 * missing there mapped. */
static struct torch_block *expand(struct pool *pool, size_t bytes)
{
	struct torch_block *block = NULL, *start = NULL;
	if (!pool->reservation)
		open_reservation(pool);
	for (block = pool->segments[0]; block && !start; block = block->after)
		if (!block->mapped) {
			start = block->before && !block->before->allocated ? block->before : block;
			start = has_room(start, bytes) ? start : NULL;
		}
	if (!start || is_capped(bytes))
		return NULL;
	if (!start->mapped)
		start = map_block(start, start->bytes < bytes ? start->bytes : bytes);
	while (start && start->bytes < bytes) {
		size_t missing = bytes - start->bytes;
		start = map_block(start->after,
		                  missing < start->after->bytes ? missing : start->after->bytes);
	}
	return start;
}

/* The whole chunks inside a free block. */
static void unmap_block(struct torch_block *block)
{
	struct pool *pool = block->pool;
	size_t from = (block->addr - pool->reservation + pool->chunk_bytes - 1) / pool->chunk_bytes;
	size_t to = (block->addr + block->bytes - pool->reservation) / pool->chunk_bytes;
	CUdeviceptr start = pool->reservation + from * pool->chunk_bytes,
		    end = pool->reservation + to * pool->chunk_bytes;
	if (from >= to)
		return;
	for (size_t i = from; i < to; i++)
		if (set.unmap(pool->reservation + i * pool->chunk_bytes, pool->chunk_bytes) ||
		    set.handle_release(pool->chunks[i]))
			abort();
	books.reserved -= end - start;
	leave_tree(block);
	if (block->addr < start) {
		struct torch_block *head = block;
		block = cut(block, start - block->addr);
		RB_INSERT(size_tree, &pool->free, head);
	}
	if (block->addr + block->bytes > end)
		RB_INSERT(size_tree, &pool->free, cut(block, end - block->addr));
	block->mapped = false;
	settle(block);
}

static struct torch_block *find_cached(struct pool *pool)
{
	struct torch_block *block = pool->segment_count ? pool->segments[0] : NULL;
	for (; block; block = block->after) {
		size_t from = (block->addr - pool->reservation + pool->chunk_bytes - 1) /
		              pool->chunk_bytes;
		if (block->mapped && !block->allocated &&
		    pool->reservation + (from + 1) * pool->chunk_bytes <=
		            block->addr + block->bytes)
			return block;
	}
	return NULL;
}

static void unmap_cached(struct pool *pool)
{
	for (struct torch_block *block; (block = find_cached(pool));)
		unmap_block(block);
}

/* ---- what PyTorch calls ---- */

EXPORT void torch_open(const struct torch_settings *settings)
{
	set = *settings;
	for (unsigned i = 0; i < POOLS; i++) {
		RB_INIT(&pools[i].free);
		pools[i].small = i % 2 == 0;
	}
}

EXPORT void torch_use_stream(unsigned number) { stream = number % TORCH_STREAMS; }

EXPORT void torch_empty_cache(void)
{
	for (unsigned i = 0; i < POOLS; i++)
		set.expandable ? unmap_cached(&pools[i]) : release_segments(&pools[i]);
}

static struct torch_block *best_fit(struct pool *pool, size_t bytes)
{
	struct torch_block wanted = { .bytes = bytes };
	return RB_NFIND(size_tree, &pool->free, &wanted);
}

static struct torch_block *grow(struct pool *pool, size_t bytes)
{
	return set.expandable ? expand(pool, bytes) : take_segment(pool, segment_bytes(bytes));
}

EXPORT struct torch_block *torch_malloc(size_t request)
{
	size_t bytes = request < BLOCK_LEAST
	                       ? BLOCK_LEAST
	                       : (request + BLOCK_LEAST - 1) / BLOCK_LEAST * BLOCK_LEAST,
	       unused, total;
	struct pool *pool = &pools[2 * stream + (bytes > small_max)];
	struct torch_block *block = best_fit(pool, bytes);
	if (!block && !(block = grow(pool, bytes))) {
		books.retries++;
		torch_empty_cache();
		if (!(block = grow(pool, bytes))) {
			set.memory(&unused, &total);
			report_failure(bytes);
			return NULL;
		}
	}
	leave_tree(block);
	if (pool->small || set.expandable ? block->bytes - bytes >= BLOCK_LEAST
	                                  : block->bytes - bytes > small_max)
		RB_INSERT(size_tree, &pool->free, cut(block, bytes));
	block->allocated = true;
	books.allocated += block->bytes;
	report(block, (int64_t)block->bytes);
	return block;
}

EXPORT void torch_free(struct torch_block *block)
{
	struct torch_block gone = *block;
	block->allocated = false;
	books.allocated -= block->bytes;
	settle(block);
	report(&gone, -(int64_t)gone.bytes);
}

EXPORT CUdeviceptr torch_address(const struct torch_block *block) { return block->addr; }
EXPORT size_t torch_bytes(const struct torch_block *block) { return block->bytes; }
EXPORT struct c10_sums torch_reported(void) { return c10_sums(); }

EXPORT struct torch_books torch_books(void)
{
	const struct torch_block *small = RB_MAX(size_tree, &pools[2 * stream].free),
				 *large = RB_MAX(size_tree, &pools[2 * stream + 1].free);
	books.hole_small = small ? small->bytes : 0;
	books.hole_large = large ? large->bytes : 0;
	return books;
}

static struct torch_pinned look_at(const struct torch_block *first)
{
	struct torch_pinned p = { .segment = first->addr };
	for (const struct torch_block *b = first; b; b = b->after) {
		p.segment_bytes += b->bytes;
		if (!b->allocated)
			continue;
		p.live_bytes += b->bytes;
		p.live_count++;
		if (b->bytes > p.block_bytes) {
			p.block_bytes = b->bytes;
			p.block = b->addr;
		}
	}
	return p;
}

EXPORT bool torch_most_pinned(size_t segment_bytes_least, struct torch_pinned *pinned)
{
	bool any = false;
	for (unsigned i = 0; i < POOLS; i++)
		for (unsigned n = 0; n < pools[i].segment_count && !set.expandable; n++) {
			struct torch_pinned p = look_at(pools[i].segments[n]);
			if (p.live_count && p.segment_bytes >= segment_bytes_least &&
			    (!any || p.live_bytes < pinned->live_bytes)) {
				*pinned = p;
				any = true;
			}
		}
	return any;
}
