/* SPDX-License-Identifier: Apache-2.0 */
/* See pytorch_pool.h. */
#include "analysis/what_if/pytorch_pool.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

static int size_order(const struct caching_block *a, const struct caching_block *b)
{
	int order = compare_numbers(a->group, b->group);
	if (!order)
		order = compare_numbers(a->bytes, b->bytes);
	if (!order)
		order = compare_numbers(a->segment_age, b->segment_age);
	return order ? order : compare_numbers(a->addr, b->addr);
}

static int addr_order(const struct caching_block *a, const struct caching_block *b)
{
	int order = compare_numbers(a->group, b->group);
	return order ? order : compare_numbers(a->addr, b->addr);
}

/* of the tree's functions some are not used */
#define UNUSED static __attribute__((unused))
RB_GENERATE_INTERNAL(caching_by_size, caching_block, node, size_order, UNUSED)
RB_GENERATE_INTERNAL(caching_by_addr, caching_block, node, addr_order, UNUSED)

/* ---- pools ---- */

static void pool_empty(struct caching_pool *pool)
{
	RB_INIT(&pool->free);
	RB_INIT(&pool->unmapped);
}

struct caching_pool *caching_pool_of(struct caching *caching, unsigned group, bool is_private,
				     bool is_small)
{
	struct caching_pool *pool;
	if (!is_private)
		return &caching->pools[is_small];
	/* few: a pool for each graph, or one for all */
	for (pool = caching->privates; pool; pool = pool->next_private)
		if (pool->group == group && pool->is_small == is_small)
			return pool;
	pool = xalloc_zeroed(1, sizeof *pool);
	pool_empty(pool);
	pool->group = group;
	pool->is_small = is_small;
	pool->is_private = true;
	pool->next_private = caching->privates;
	return caching->privates = pool;
}

void caching_init(struct caching *caching, struct driver_pages *driver, uint64_t reservation_bytes)
{
	*caching = (struct caching){ .driver = driver, .reservation_bytes = reservation_bytes };
	for (int small = 0; small < 2; small++) {
		pool_empty(&caching->pools[small]);
		caching->pools[small].is_small = small;
	}
}

void caching_fini(struct caching *caching)
{
	for (struct caching_block *block = caching->blocks, *next; block; block = next) {
		next = block->listed_after;
		free(block);
	}
	for (struct caching_pool *pool; (pool = caching->privates);) {
		caching->privates = pool->next_private;
		free(pool);
	}
}

uint64_t caching_releasable(const struct caching_block *block)
{
	uint64_t from, to;
	if (block->pool->is_private)
		return 0;
	if (!block->chunk_bytes)
		return caching_is_split(block) ? 0 : block->bytes;
	from = block->addr - block->segment_addr + block->chunk_bytes - 1;
	to = block->addr - block->segment_addr + block->bytes;
	from -= from % block->chunk_bytes;
	to -= to % block->chunk_bytes;
	return subtract_to_zero(to, from);
}

void pool_insert(struct caching *caching, struct caching_block *block)
{
	if (!block->mapped) {
		RB_INSERT(caching_by_addr, &block->pool->unmapped, block);
		return;
	}
	block->born = block->pool->searches;
	RB_INSERT(caching_by_size, &block->pool->free, block);
	caching->figures.releasable_bytes += caching_releasable(block);
}

void pool_remove(struct caching *caching, struct caching_block *block)
{
	if (!block->mapped) {
		RB_REMOVE(caching_by_addr, &block->pool->unmapped, block);
		return;
	}
	RB_REMOVE(caching_by_size, &block->pool->free, block);
	caching->figures.releasable_bytes -= caching_releasable(block);
}

struct caching_block *pool_best(struct caching_pool *pool, unsigned group, uint64_t bytes)
{
	struct caching_block key = { .group = group, .bytes = bytes }, *block;
	block = RB_NFIND(caching_by_size, &pool->free, &key);
	return block && block->group == group ? block : NULL;
}

struct caching_block *pool_next(struct caching_block *block)
{
	struct caching_block *next = RB_NEXT(caching_by_size, &block->pool->free, block);
	return next && next->group == block->group ? next : NULL;
}

struct caching_block *pool_before(struct caching_block *block)
{
	struct caching_block *before = RB_PREV(caching_by_size, &block->pool->free, block);
	return before && before->group == block->group ? before : NULL;
}

struct caching_block *pool_last_below(struct caching_pool *pool, unsigned group, uint64_t bytes)
{
	struct caching_block key = { .group = group, .bytes = bytes }, *block;
	block = RB_NFIND(caching_by_size, &pool->free, &key);
	block = block ? RB_PREV(caching_by_size, &pool->free, block) :
			RB_MAX(caching_by_size, &pool->free);
	return block && block->group == group ? block : NULL;
}

struct caching_block *pool_first(struct caching_pool *pool)
{
	return RB_MIN(caching_by_size, &pool->free);
}

struct caching_block *pool_following(struct caching_block *block)
{
	return RB_NEXT(caching_by_size, &block->pool->free, block);
}

/* ---- blocks ---- */

static struct caching_block *block_new(struct caching *caching, const struct caching_block *like)
{
	struct caching_block *block = xalloc_zeroed(1, sizeof *block);
	*block = *like;
	block->before = block->after = NULL;
	block->listed_before = NULL;
	block->listed_after = caching->blocks;
	if (caching->blocks)
		caching->blocks->listed_before = block;
	caching->blocks = block;
	return block;
}

static void block_end(struct caching *caching, struct caching_block *block)
{
	if (block->listed_before)
		block->listed_before->listed_after = block->listed_after;
	else
		caching->blocks = block->listed_after;
	if (block->listed_after)
		block->listed_after->listed_before = block->listed_before;
	free(block);
}

static void link_after(struct caching_block *block, struct caching_block *new)
{
	new->before = block;
	new->after = block->after;
	if (block->after)
		block->after->before = new;
	block->after = new;
}

static void reserved_add(struct caching *caching, uint64_t bytes)
{
	struct model_figures *figures = &caching->figures;
	figures->reserved_bytes += bytes;
	figures->peak_reserved_bytes =
		most_of(figures->peak_reserved_bytes, figures->reserved_bytes);
}

/* What is new of the driver. */
static uint64_t segment_age(struct caching *caching)
{
	return caching->prefers_old ? caching->segments_made++ : 0;
}

struct caching_block *segment_take(struct caching *caching, struct caching_pool *pool,
				   unsigned group, uint64_t bytes)
{
	struct caching_block like = {
		.pool = pool, .bytes = bytes, .group = group, .mapped = true
	};
	if (!driver_take(caching->driver, bytes, &like.addr))
		return NULL;
	like.segment_addr = like.addr;
	like.segment_age = segment_age(caching);
	reserved_add(caching, bytes);
	return block_new(caching, &like);
}

void segment_release(struct caching *caching, struct caching_block *block)
{
	pool_remove(caching, block);
	driver_give(caching->driver, block->addr, block->bytes);
	caching->figures.reserved_bytes -= block->bytes;
	block_end(caching, block);
}

void block_split(struct caching *caching, struct caching_block *block, uint64_t bytes)
{
	struct caching_block *rest = block_new(caching, block);
	rest->addr += bytes;
	rest->bytes -= bytes;
	block->bytes = bytes;
	link_after(block, rest);
	rest->allocated = false;
	pool_insert(caching, rest);
}

/* Takes a free neighbour in, if it is one; it is no block of its own then. */
static void merge_blocks(struct caching *caching, struct caching_block *block,
			 struct caching_block *neighbour)
{
	if (!neighbour || neighbour->allocated || neighbour->mapped != block->mapped)
		return;
	pool_remove(caching, neighbour);
	if (block->before == neighbour) {
		block->addr = neighbour->addr;
		block->before = neighbour->before;
		if (block->before)
			block->before->after = block;
	} else {
		block->after = neighbour->after;
		if (block->after)
			block->after->before = block;
	}
	block->bytes += neighbour->bytes;
	block_end(caching, neighbour);
}

void block_free(struct caching *caching, struct caching_block *block)
{
	block->allocated = false;
	merge_blocks(caching, block, block->before);
	merge_blocks(caching, block, block->after);
	pool_insert(caching, block);
}

/* ---- expandable segments ---- */

static bool is_takeable(const struct caching_block *block) { return block && !block->allocated; }

static bool has_addresses(const struct caching_block *block, uint64_t bytes)
{
	uint64_t sum = 0;
	for (; sum < bytes && is_takeable(block); block = block->after)
		sum += block->bytes;
	return sum >= bytes;
}

/* Free or unmapped blocks in a row with so many addresses: the first of them. A new segment where
 * there is none. */
static struct caching_block *addresses_find(struct caching *caching, struct caching_pool *pool,
					    unsigned group, uint64_t bytes, uint64_t chunk_bytes)
{
	struct caching_block key = { .group = group }, *block;
	struct caching_block like = { .pool = pool, .group = group, .chunk_bytes = chunk_bytes };
	for (block = RB_NFIND(caching_by_addr, &pool->unmapped, &key);
	     block && block->group == group;
	     block = RB_NEXT(caching_by_addr, &pool->unmapped, block)) {
		struct caching_block *first = block;
		if (is_takeable(block->before))
			first = block->before;
		if (has_addresses(first, bytes))
			return first;
	}
	like.bytes = (caching->reservation_bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
	like.addr = like.segment_addr = driver_reserve(caching->driver, like.bytes);
	like.segment_age = segment_age(caching);
	block = block_new(caching, &like);
	pool_insert(caching, block);
	return block;
}

/* Maps whole chunks for the first bytes of an unmapped block, all of them or none, and merges it
 * with its mapped neighbours; NULL: refused. The result is in its pool. */
static struct caching_block *map_block(struct caching *caching, struct caching_block *block,
				       uint64_t bytes)
{
	uint64_t unit = block->chunk_bytes, mapped = (bytes + unit - 1) / unit * unit;
	mapped = least_of(mapped, block->bytes);
	for (uint64_t done = 0; done < mapped; done += unit)
		if (!driver_create(caching->driver, unit)) {
			while (done) {
				driver_release(caching->driver, unit);
				done -= unit;
			}
			return NULL;
		}
	pool_remove(caching, block);
	if (mapped < block->bytes) {
		struct caching_block *rest = block_new(caching, block);
		rest->addr += mapped;
		rest->bytes -= mapped;
		block->bytes = mapped;
		link_after(block, rest);
		pool_insert(caching, rest);
	}
	block->mapped = true;
	reserved_add(caching, mapped);
	merge_blocks(caching, block, block->before);
	merge_blocks(caching, block, block->after);
	pool_insert(caching, block);
	return block;
}

struct caching_block *expandable_take(struct caching *caching, struct caching_pool *pool,
				      unsigned group, uint64_t bytes, uint64_t chunk_bytes)
{
	struct caching_block *block = addresses_find(caching, pool, group, bytes, chunk_bytes);
	if (!block->mapped && !(block = map_block(caching, block, least_of(block->bytes, bytes))))
		return NULL;
	while (block->bytes < bytes) {
		struct caching_block *next = block->after;
		if (!next || !(next = map_block(caching, next,
						least_of(bytes - block->bytes, next->bytes))))
			return NULL;
		block = next;
	}
	pool_remove(caching, block);
	return block;
}

void expandable_unmap(struct caching *caching, struct caching_block *block)
{
	uint64_t unit = block->chunk_bytes, bytes, start = block->addr - block->segment_addr, from;
	from = (start + unit - 1) / unit * unit;
	bytes = subtract_to_zero((start + block->bytes) / unit * unit, from);
	if (!bytes)
		return;
	pool_remove(caching, block);
	if (from > start) { /* what is left mapped before */
		struct caching_block *rest = block_new(caching, block);
		rest->bytes = from - start;
		rest->before = block->before;
		if (rest->before)
			rest->before->after = rest;
		rest->after = block;
		block->before = rest;
		block->addr += rest->bytes;
		block->bytes -= rest->bytes;
		pool_insert(caching, rest);
	}
	if (block->bytes > bytes) {
		struct caching_block *rest = block_new(caching, block);
		rest->addr += bytes;
		rest->bytes -= bytes;
		block->bytes = bytes;
		link_after(block, rest);
		pool_insert(caching, rest);
	}
	block->mapped = false;
	merge_blocks(caching, block, block->before);
	merge_blocks(caching, block, block->after);
	pool_insert(caching, block);
	for (uint64_t done = 0; done < bytes; done += unit)
		driver_release(caching->driver, unit);
	caching->figures.reserved_bytes -= bytes;
	if (!caching_is_split(block)) { /* nothing of the segment is mapped: it goes */
		pool_remove(caching, block);
		driver_unreserve(caching->driver, block->addr, block->bytes);
		block_end(caching, block);
	}
}
