/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed array of pools. A slot is claimed by its handle (compare-and-swap) and freed by storing
 * 0. */
#include "interpose/hooks/cuda/cuda_pool_table.h"

#include "interpose/platform/at_fork_child.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"

#define POOLS_KNOWN_MAX 64u
static struct cuf_pool pools[POOLS_KNOWN_MAX];

/* Linear: a process has one pool for each device, and seldom a few more. */
struct cuf_pool *cuf_pool_find(uint64_t pool)
{
	for (unsigned i = 0; pool && i < POOLS_KNOWN_MAX; i++)
		if (__atomic_load_n(&pools[i].pool, __ATOMIC_ACQUIRE) == pool)
			return &pools[i];
	return NULL;
}

/* A full table drops the pool, and counts it: its blocks are still recorded, only their sum and the
 * driver's figures are missing. */
void cuf_pool_add(uint64_t pool, int device, unsigned kind)
{
	for (unsigned i = 0; pool && i < POOLS_KNOWN_MAX; i++) {
		uint64_t empty = 0;
		if (!__atomic_compare_exchange_n(&pools[i].pool, &empty, pool, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		pools[i].used_bytes = 0;
		pools[i].reserved_bytes = 0;
		pools[i].device = device;
		pools[i].kind = (uint8_t)kind;
		return;
	}
	if (pool)
		cuf_note_dropped(CUF_LOST_SMALL);
}

void cuf_pool_remove(struct cuf_pool *pool) { __atomic_store_n(&pool->pool, 0, __ATOMIC_RELEASE); }

/* Blocks name their pool in aux. Other kinds use aux for other things. */
void cuf_pool_block_freed(const struct cuf_block *block, bool freed)
{
	int64_t change = (int64_t)block->bytes;
	struct cuf_pool *pool;
	if (block->kind != CUF_KIND_ASYNC && block->kind != CUF_KIND_MANAGED)
		return;
	pool = cuf_pool_find(block->aux);
	if (freed)
		change = -change;
	if (pool)
		__atomic_fetch_add(&pool->used_bytes, change, __ATOMIC_RELAXED);
}

/* The pools of a forked child's parent are not the child's. */
static void forget_pools(void)
{
	for (unsigned i = 0; i < POOLS_KNOWN_MAX; i++)
		__atomic_store_n(&pools[i].pool, 0, __ATOMIC_RELEASE);
}
CUF_AT_FORK_CHILD(forget_pools);

/* ---- the driver's figures ---- */

/* CUF_UNKNOWN: the driver lacks the function, or the pool was destroyed meanwhile. */
static uint64_t query_attribute(uint64_t pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;
	if (!cuf_query.cuMemPoolGetAttribute ||
	    cuf_query.cuMemPoolGetAttribute((CUmemoryPool)pool, attribute, &value) != CUDA_SUCCESS)
		return CUF_UNKNOWN;
	return value;
}

/* In bytes. UINT64_MAX: the pool never returns memory by itself. */
uint64_t cuf_pool_threshold(uint64_t pool)
{
	return query_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
}

/* Three queries of the driver, so never called on a path that each allocation takes. */
struct cuf_pool_level cuf_pool_query(uint64_t pool)
{
	return (struct cuf_pool_level){
		.pool = pool,
		.reserved_bytes = query_attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
		.used_bytes = query_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
		.threshold_bytes = cuf_pool_threshold(pool),
	};
}

/* Inserts into a list that is sorted by reserved bytes. When the list is full, the smallest
 * goes. */
static unsigned insert_level(struct cuf_pool_level *levels, unsigned count, unsigned max,
			     const struct cuf_pool_level *level)
{
	unsigned at = count;
	if (count == max) {
		if (levels[max - 1].reserved_bytes >= level->reserved_bytes)
			return count;
		at = max - 1;
	} else {
		count++;
	}
	for (; at > 0 && levels[at - 1].reserved_bytes < level->reserved_bytes; at--)
		levels[at] = levels[at - 1];
	levels[at] = *level;
	return count;
}

/* For a failure's record, which has space for `max` pools: the largest ones matter most. */
unsigned cuf_pools_read(int device, struct cuf_pool_level *levels, unsigned max)
{
	unsigned count = 0;
	for (unsigned i = 0; i < POOLS_KNOWN_MAX; i++) {
		uint64_t pool = __atomic_load_n(&pools[i].pool, __ATOMIC_ACQUIRE);
		struct cuf_pool_level level;
		if (!pool || pools[i].device != device)
			continue;
		level = cuf_pool_query(pool);
		if (level.reserved_bytes != CUF_UNKNOWN)
			count = insert_level(levels, count, max, &level);
	}
	return count;
}
