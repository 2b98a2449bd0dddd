/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the driver in regions, cut into chunks: what the pools of CuPy, RMM, ONNX Runtime, JAX
 * and TensorFlow have in common. A free chunk merges with free neighbours of its region and list.
 * The smallest chunk that fits is used, the lowest address among equals.
 *
 * Contract: heap memory, from regions_init to regions_fini. Sizes are bytes. A list is a number: of
 * the stream that chunks belong to, 0 where a pool does not distinguish them. A chunk that is free
 * and in no list is the caller's until regions_use or regions_insert. NULL: none, or the driver
 * refused. What the driver gave is not
 * released at the end.
 */
#ifndef ANALYSIS_WHAT_IF_TRIALS_REGIONS_H
#define ANALYSIS_WHAT_IF_TRIALS_REGIONS_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include "analysis/what_if/allocator_model.h"

struct chunk {
	RB_ENTRY(chunk) node;            /* of the free ones: by list, size, address */
	struct chunk *before, *after;    /* in its region */
	uint64_t addr, bytes;
	unsigned list;
	bool is_free;
};
RB_HEAD(free_chunks, chunk);

struct regions {
	struct driver_pages *driver;
	struct free_chunks free;
	struct chunk **blocks;           /* by number of block; NULL */
	uint32_t block_count;
	struct model_figures figures;
	unsigned list_count;             /* lists that were ever named */
	uint64_t equal_choices;          /* requests that several chunks of one size fitted */
};

/* A multiple of the unit, and a size that no driver has for what is close to 2^64. */
static inline uint64_t regions_round(uint64_t bytes, uint64_t unit)
{
	if (bytes > UINT64_MAX / 2)
		return UINT64_MAX / 2 / unit * unit;
	return (bytes + unit - 1) / unit * unit;
}

void regions_init(struct regions *regions, const struct model_ground *ground);
void regions_fini(struct regions *regions);

/* The best free chunk of a list, taken out of it. */
struct chunk *regions_best(struct regions *regions, unsigned list, uint64_t bytes);
/* A new region as one chunk. */
struct chunk *regions_grow(struct regions *regions, unsigned list, uint64_t bytes);
/* Puts a free chunk into its list, without merging. */
void regions_insert(struct regions *regions, struct chunk *chunk);
/* The chunk is the block's; what is beyond `bytes` becomes a free chunk of the same list. */
void regions_use(struct regions *regions, struct chunk *chunk, uint64_t bytes, uint32_t block);
/* The block is freed into a list. No such block: nothing happens. */
void regions_give(struct regions *regions, uint32_t block, unsigned list);
/* Adds one list to another. */
void regions_join(struct regions *regions, unsigned from, unsigned to);
/* Returns regions of one free chunk to the driver. */
void regions_release(struct regions *regions);

#endif
