/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites that gain, and what happens if they keep only some of their blocks. */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/work.h"

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

static void append(struct trace *trace, const struct trace_step *step)
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
		append(changed, oldest);
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
		append(changed, step);
	}
	free(kept.ring);
	free(frees);
	return changed;
}
