/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches: call sites that have many blocks at the end, requested all along, whether or not they
 * free some. A bound frees the oldest ones first.
 */
#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/work.h"

/* Parts of the history: a cache requests blocks in each but the first. */
enum { PARTS = 4, BLOCKS_MIN = 8 };

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

static void append(struct trace *trace, struct trace_step step)
{
	xalloc_grow(&trace->steps, trace->count, &trace->room, sizeof *trace->steps);
	trace->steps[trace->count++] = step;
}

static void drop_oldest(struct bounded *cache, uint64_t time_ns)
{
	struct trace_step oldest = cache->entries[cache->first++];

	if (cache->is_gone[oldest.block])
		return;
	cache->is_gone[oldest.block] = true;
	cache->bytes -= oldest.bytes;
	oldest.op = TRACE_FREE;
	oldest.time_ns = time_ns;
	append(cache->changed, oldest);
}

static void add_entry(struct bounded *cache, const struct trace_step *step)
{
	while (cache->first < cache->count && cache->bytes + step->bytes > cache->bytes_most)
		drop_oldest(cache, step->time_ns);
	xalloc_grow(&cache->entries, cache->count, &cache->room, sizeof *cache->entries);
	cache->entries[cache->count++] = *step;
	cache->bytes += step->bytes;
	append(cache->changed, *step);
}

/* The program's own free; one of a block that the bound has freed already is left out. */
static void free_entry(struct bounded *cache, const struct trace_step *step)
{
	if (cache->is_gone[step->block])
		return;
	cache->is_gone[step->block] = true;
	cache->bytes -= step->bytes;
	append(cache->changed, *step);
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
			add_entry(&cache, step);
		} else if (step->op == TRACE_FREE && is_entry[step->block]) {
			free_entry(&cache, step);
		} else {
			append(cache.changed, *step);
		}
	}
	free(cache.entries);
	free(cache.is_gone);
	free(is_entry);
	return cache.changed;
}
