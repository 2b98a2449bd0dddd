/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and pools of PyTorch's caching allocator, as a model: what is split, merged, cached and
 * mapped. pytorch.c decides when.
 *
 * Contract: sizes are bytes. Blocks belong to the allocator that made them, caching_fini frees all.
 * A block is in `free` of its pool while nobody has it and it is mapped, in `unmapped` while it is
 * only reserved addresses, and in neither while it is allocated.
 */
#pragma once

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/what_if/allocator_model.h"

#define CACHING_MIN_BYTES 512u
#define CACHING_SMALL_BYTES (1ull << 20)         /* at most this: from a segment for small ones */
#define CACHING_SMALL_SEGMENT_BYTES (2ull << 20)
#define CACHING_ROUND_BYTES (2ull << 20)         /* of segments of one block */

struct caching_pool;

struct caching_block {
	RB_ENTRY(caching_block) node; /* of free by group, size, age, address; of unmapped by */
				      /* group, address */
	struct caching_block *before, *after; /* in its segment */
	struct caching_block *listed_before, *listed_after; /* in caching.blocks */
	struct caching_pool *pool;
	uint64_t addr, bytes;
	uint64_t born;        /* searches of its pool when it became free */
	uint64_t chunk_bytes; /* unit of mapping; 0: a segment of cudaMalloc */
	uint64_t segment_addr;
	uint64_t segment_age; /* segments made before its own; 0 where that has no say */
	unsigned group;
	bool allocated, mapped;
};
RB_HEAD(caching_by_size, caching_block);
RB_HEAD(caching_by_addr, caching_block);

struct caching_pool {
	struct caching_by_size free;
	struct caching_by_addr unmapped;
	uint64_t searches;
	unsigned group; /* of a private pool */
	bool is_small, is_private;
	struct caching_pool *next_private;
};

struct caching {
	struct driver_pages *driver;
	struct caching_pool pools[2]; /* large, small */
	struct caching_pool *privates; /* two for each group of a graph's pool */
	struct model_figures figures;
	uint64_t reservation_bytes; /* of an expandable segment */
	/* Among free blocks of one size, the one of the oldest segment is taken, and not the one
	 * with the lowest address. */
	bool prefers_old;
	uint64_t segments_made;
	struct caching_block *blocks; /* all of them */
};

void caching_init(struct caching *caching, struct driver_pages *driver, uint64_t reservation_bytes);
void caching_fini(struct caching *caching);
/* The pool of a group; made at first sight for a private one. */
struct caching_pool *caching_pool_of(struct caching *caching, unsigned group, bool is_private,
				     bool is_small);

void pool_insert(struct caching *caching, struct caching_block *block);
void pool_remove(struct caching *caching, struct caching_block *block);
/* The smallest free block of the group with at least so many bytes; NULL: none. */
struct caching_block *pool_best(struct caching_pool *pool, unsigned group, uint64_t bytes);
/* The next larger one of its group. */
struct caching_block *pool_next(struct caching_block *block);
/* The one before it in that order, which may be as large. */
struct caching_block *pool_before(struct caching_block *block);
/* The largest one of the group with fewer bytes. */
struct caching_block *pool_last_below(struct caching_pool *pool, unsigned group, uint64_t bytes);
/* All free blocks of a pool, by group and size. */
struct caching_block *pool_first(struct caching_pool *pool);
struct caching_block *pool_following(struct caching_block *block);

static inline bool caching_is_split(const struct caching_block *block)
{
	return block->before || block->after;
}

/* A segment of cudaMalloc as one block that is in no pool; NULL: refused. */
struct caching_block *segment_take(struct caching *caching, struct caching_pool *pool,
				   unsigned group, uint64_t bytes);
/* Gives a free block that is a whole segment back. */
void segment_release(struct caching *caching, struct caching_block *block);

/* The end of the block becomes a free block of its own. */
void block_split(struct caching *caching, struct caching_block *block, uint64_t bytes);
/* A block that nobody has any more; it is merged with its free neighbours. */
void block_free(struct caching *caching, struct caching_block *block);

/* Mapped memory for so many bytes in an expandable segment; the block is in no pool. NULL: the
 * driver refused a part, and what it gave before that stays mapped. */
struct caching_block *expandable_take(struct caching *caching, struct caching_pool *pool,
				      unsigned group, uint64_t bytes, uint64_t chunk_bytes);
/* Unmaps what a free block covers in whole chunks. */
void expandable_unmap(struct caching *caching, struct caching_block *block);
/* What of a free block would be released. */
uint64_t caching_releasable(const struct caching_block *block);
