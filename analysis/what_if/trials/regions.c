/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if/trials/regions.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"

static int compare_chunks(struct chunk *a, struct chunk *b)
{
	if (a->list != b->list)
		return a->list < b->list ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return compare_numbers(a->addr, b->addr);
}

/* of the tree's functions some are not used */
#define UNUSED static __attribute__((unused))
RB_GENERATE_INTERNAL(free_chunks, chunk, node, compare_chunks, UNUSED)

void regions_init(struct regions *regions, const struct model_ground *ground)
{
	*regions = (struct regions){ .driver = ground->driver };
	RB_INIT(&regions->free);
	regions->block_count = ground->block_count;
	regions->blocks = xalloc_zeroed(ground->block_count + 1, sizeof(struct chunk *));
}

static bool is_whole(const struct chunk *chunk) { return !chunk->before && !chunk->after; }

void regions_insert(struct regions *regions, struct chunk *chunk)
{
	chunk->is_free = true;
	if (is_whole(chunk))
		regions->figures.releasable_bytes += chunk->bytes;
	if (chunk->list >= regions->list_count)
		regions->list_count = chunk->list + 1;
	RB_INSERT(free_chunks, &regions->free, chunk);
}

static void take_out(struct regions *regions, struct chunk *chunk)
{
	if (is_whole(chunk))
		regions->figures.releasable_bytes -= chunk->bytes;
	RB_REMOVE(free_chunks, &regions->free, chunk);
	chunk->is_free = false;
}

struct chunk *regions_best(struct regions *regions, unsigned list, uint64_t bytes)
{
	struct chunk key = { .bytes = bytes, .list = list };
	struct chunk *found = RB_NFIND(free_chunks, &regions->free, &key), *next;

	if (!found || found->list != list)
		return NULL;
	next = RB_NEXT(free_chunks, &regions->free, found);
	regions->equal_choices += next && next->list == list && next->bytes == found->bytes;
	take_out(regions, found);
	return found;
}

struct chunk *regions_grow(struct regions *regions, unsigned list, uint64_t bytes)
{
	struct model_figures *figures = &regions->figures;
	struct chunk *chunk;
	uint64_t addr;

	if (!driver_take(regions->driver, bytes, &addr))
		return NULL;
	chunk = xalloc_zeroed(1, sizeof *chunk);
	*chunk = (struct chunk){ .addr = addr, .bytes = bytes, .list = list };
	figures->reserved_bytes += bytes;
	figures->peak_reserved_bytes = most_of(figures->peak_reserved_bytes,
					       figures->reserved_bytes);
	return chunk;
}

void regions_use(struct regions *regions, struct chunk *chunk, uint64_t bytes, uint32_t block)
{
	if (bytes < chunk->bytes) {
		struct chunk *rest = xalloc_zeroed(1, sizeof *rest);

		*rest = (struct chunk){ .before = chunk, .after = chunk->after,
					.addr = chunk->addr + bytes,
					.bytes = chunk->bytes - bytes, .list = chunk->list };
		if (rest->after)
			rest->after->before = rest;
		chunk->after = rest;
		chunk->bytes = bytes;
		regions_insert(regions, rest);
	}
	regions->figures.allocated_bytes += chunk->bytes;
	regions->blocks[block] = chunk;
}

/* The second chunk, which follows the first, becomes part of it. */
static void merge(struct chunk *first, struct chunk *second)
{
	first->bytes += second->bytes;
	first->after = second->after;
	if (first->after)
		first->after->before = first;
	free(second);
}

static struct chunk *merge_free(struct regions *regions, struct chunk *chunk)
{
	struct chunk *near = chunk->after;

	if (near && near->is_free && near->list == chunk->list) {
		take_out(regions, near);
		merge(chunk, near);
	}
	near = chunk->before;
	if (near && near->is_free && near->list == chunk->list) {
		take_out(regions, near);
		merge(near, chunk);
		chunk = near;
	}
	return chunk;
}

void regions_give(struct regions *regions, uint32_t block, unsigned list)
{
	struct chunk *chunk = regions->blocks[block];

	if (!chunk)
		return;
	regions->blocks[block] = NULL;
	regions->figures.allocated_bytes -= chunk->bytes;
	chunk->list = list;
	regions_insert(regions, merge_free(regions, chunk));
}

void regions_join(struct regions *regions, unsigned from, unsigned to)
{
	struct chunk *chunk;

	while ((chunk = regions_best(regions, from, 0))) {
		chunk->list = to;
		regions_insert(regions, merge_free(regions, chunk));
	}
}

void regions_release(struct regions *regions)
{
	struct chunk *chunk, *next;

	RB_FOREACH_SAFE(chunk, free_chunks, &regions->free, next) {
		if (!is_whole(chunk))
			continue;
		take_out(regions, chunk);
		driver_give(regions->driver, chunk->addr, chunk->bytes);
		regions->figures.reserved_bytes -= chunk->bytes;
		free(chunk);
	}
}

void regions_fini(struct regions *regions)
{
	struct chunk *chunk, *next;

	RB_FOREACH_SAFE(chunk, free_chunks, &regions->free, next) {
		RB_REMOVE(free_chunks, &regions->free, chunk);
		free(chunk);
	}
	for (uint32_t i = 0; i < regions->block_count; i++)
		free(regions->blocks[i]);
	free(regions->blocks);
}
