/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/what_if/work.h"

/* Call sites that gain, and what happens if they keep only some of their blocks. */

/* Parts of the history, and how often a site must have gained after something was freed. Blocks
 * that are only in use at the same time are no gain. */
enum { PARTS = 4, GAINED_MIN = 8 };

struct gain {
	uint32_t stack;
	size_t blocks, rounds, parts[PARTS];
	size_t frees;      /* of the trace, before its last block */
	uint64_t bytes;
};

/* What was there from the start and what is loaded is no gain: each later part must have some. */
static bool gains_throughout(const struct gain *gain)
{
	for (int part = 1; part < PARTS; part++)
		if (!gain->parts[part])
			return false;
	return gain->rounds >= GAINED_MIN;
}

static void add_kept(struct gain *gain, const struct trace_step *step, size_t part, size_t given)
{
	gain->stack = step->stack;
	gain->blocks++;
	gain->bytes += step->bytes;
	if (given == gain->frees)
		return;
	gain->frees = given;
	gain->rounds++;
	gain->parts[part]++;
}

struct gaining_site gaining_site_of(const struct trace *trace)
{
	size_t *frees = frees_of(trace), room = 0, count = 0, given = 0;
	struct gaining_site found = { 0 };
	struct hash_index index;
	struct gain *gains = NULL;

	hash_index_init(&index, 256);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		uint32_t *number;

		given += step->op == TRACE_FREE;
		if (step->op != TRACE_ALLOC || !step->stack || frees[step->block] != SIZE_MAX)
			continue;
		number = hash_index_place(&index, step->stack);
		if (!*number) {
			xalloc_grow(&gains, count, &room, sizeof *gains);
			gains[count] = (struct gain){ 0 };
			*number = (uint32_t)++count;
		}
		add_kept(&gains[*number - 1], step, i * PARTS / trace->count, given);
	}
	for (size_t i = 0; i < count; i++)
		if (gains_throughout(&gains[i]) && gains[i].bytes > found.bytes)
			found = (struct gaining_site){ gains[i].stack, gains[i].blocks,
						       gains[i].bytes };
	hash_index_fini(&index);
	free(gains);
	free(frees);
	return found;
}

/* The blocks of the site that are kept, as a ring of so many. */
struct kept_blocks {
	struct trace_step *ring;
	size_t most, count;
};

static void append_site(struct trace *trace, const struct trace_step *step)
{
	xalloc_grow(&trace->steps, trace->count, &trace->room, sizeof *trace->steps);
	trace->steps[trace->count++] = *step;
}

/* Before one more is requested, the oldest of too many is freed. */
static void make_way(struct trace *changed, struct kept_blocks *kept,
		     const struct trace_step *next)
{
	struct trace_step *oldest = &kept->ring[kept->count % kept->most];

	if (kept->count >= kept->most) {
		oldest->op = TRACE_FREE;
		oldest->time_ns = next->time_ns;
		append_site(changed, oldest);
	}
	*oldest = *next;
	kept->count++;
}

struct trace *bound_site(const struct trace *trace, const struct trial *trial, struct arena *arena,
			 const char **why_not)
{
	struct gaining_site site = gaining_site_of(trace);
	struct kept_blocks kept = { .most = (size_t)trial->argument };
	struct trace *changed;
	size_t *frees;

	if (!site.stack || !kept.most) {
		*why_not = "no call site gains blocks";
		return NULL;
	}
	changed = trace_copy(trace);
	changed->count = 0;
	frees = frees_of(trace);
	kept.ring = xalloc_zeroed(kept.most, sizeof *kept.ring);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if (step->op == TRACE_ALLOC && step->stack == site.stack &&
		    frees[step->block] == SIZE_MAX)
			make_way(changed, &kept, step);
		append_site(changed, step);
	}
	free(kept.ring);
	free(frees);
	return changed;
}

/*
 * Caches: call sites that have many blocks at the end, requested all along, whether or not they
 * free some. A bound frees the oldest ones first.
 */

/* A cache requests blocks in each part of the history but the first. */
enum { BLOCKS_MIN = 8 };

struct stock { uint32_t stack; size_t parts[PARTS], blocks; uint64_t bytes; };

static bool is_cache(const struct stock *stock)
{
	for (int part = 1; part < PARTS; part++)
		if (!stock->parts[part])
			return false;
	return stock->blocks >= BLOCKS_MIN;
}

struct gaining_site cache_site_of(const struct trace *trace)
{
	size_t *frees = frees_of(trace), room = 0, count = 0;
	struct gaining_site found = { 0 };
	struct stock *stocks = NULL;
	struct hash_index index;

	hash_index_init(&index, 256);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		uint32_t *number;

		if (step->op != TRACE_ALLOC || !step->stack)
			continue;
		number = hash_index_place(&index, step->stack);
		if (!*number) {
			xalloc_grow(&stocks, count, &room, sizeof *stocks);
			stocks[count] = (struct stock){ .stack = step->stack };
			*number = (uint32_t)++count;
		}
		stocks[*number - 1].parts[i * PARTS / trace->count]++;
		if (frees[step->block] != SIZE_MAX)
			continue;
		stocks[*number - 1].blocks++;
		stocks[*number - 1].bytes += step->bytes;
	}
	for (size_t i = 0; i < count; i++)
		if (is_cache(&stocks[i]) && stocks[i].bytes > found.bytes)
			found = (struct gaining_site){ stocks[i].stack, stocks[i].blocks,
						       stocks[i].bytes };
	hash_index_fini(&index);
	free(stocks);
	free(frees);
	return found;
}

/* The cache while its history is rewritten: its blocks in the order of their requests. */
struct bounded {
	struct trace *changed;
	struct trace_step *entries;
	size_t first, count, room;
	bool *is_gone; /* by number of block: freed, by the program or by the bound */
	uint64_t bytes, bytes_most;
};

static void drop_oldest(struct bounded *cache, uint64_t time_ns)
{
	struct trace_step oldest = cache->entries[cache->first++];

	if (cache->is_gone[oldest.block])
		return;
	cache->is_gone[oldest.block] = true;
	cache->bytes -= oldest.bytes;
	oldest.op = TRACE_FREE;
	oldest.time_ns = time_ns;
	append_site(cache->changed, &oldest);
}

static void add_site_entry(struct bounded *cache, const struct trace_step *step)
{
	while (cache->first < cache->count && cache->bytes + step->bytes > cache->bytes_most)
		drop_oldest(cache, step->time_ns);
	xalloc_grow(&cache->entries, cache->count, &cache->room, sizeof *cache->entries);
	cache->entries[cache->count++] = *step;
	cache->bytes += step->bytes;
	append_site(cache->changed, step);
}

/* The program's own free; one of a block that the bound has freed already is left out. */
static void free_entry(struct bounded *cache, const struct trace_step *step)
{
	if (cache->is_gone[step->block])
		return;
	cache->is_gone[step->block] = true;
	cache->bytes -= step->bytes;
	append_site(cache->changed, step);
}

struct trace *bound_cache(const struct trace *trace, const struct trial *trial,
			  struct arena *arena, const char **why_not)
{
	struct gaining_site site = cache_site_of(trace);
	struct bounded cache = { .bytes_most = (uint64_t)trial->argument };
	bool *is_entry;

	if (!site.stack) {
		*why_not = "no call site keeps blocks all along";
		return NULL;
	}
	is_entry = xalloc_zeroed(trace->block_count + 1, sizeof *is_entry);
	cache.is_gone = xalloc_zeroed(trace->block_count + 1, sizeof *cache.is_gone);
	cache.changed = trace_copy(trace);
	cache.changed->count = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if (step->op == TRACE_ALLOC && step->stack == site.stack) {
			is_entry[step->block] = true;
			add_site_entry(&cache, step);
		} else if (step->op == TRACE_FREE && is_entry[step->block]) {
			free_entry(&cache, step);
		} else {
			append_site(cache.changed, step);
		}
	}
	free(cache.entries);
	free(cache.is_gone);
	free(is_entry);
	return cache.changed;
}
