/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites whose sizes follow the work. A context that gets longer makes blocks that grow by
 * equal steps. A batch makes blocks of some multiple of one size, which comes and goes.
 */
#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/what_if/work.h"

/* So often sizes must have risen by one step, or differed, to be of a context or of a batch. */
enum { RISES_MIN = 8, BLOCKS_MIN = 8, CHANGES_MIN = 3, MULTIPLE_MOST = 4096 };

struct sized_site {
	uint32_t stack;
	size_t blocks, rises, changes;
	size_t equal_rises;      /* by step_bytes */
	uint64_t step_bytes;     /* the candidate: by majority of rises */
	size_t votes;
	uint64_t last_bytes, least_bytes, most_bytes;
	uint64_t unit_bytes;     /* the greatest common divisor of its sizes */
};

struct sized_sites {
	struct sized_site *rows;
	size_t count, room;
	struct hash_index index;
};

static bool is_request(const struct trace_step *step)
{
	return step->stack && (step->op == TRACE_ALLOC || step->op == TRACE_REFUSED);
}

static struct sized_site *sized_of(struct sized_sites *sites, uint32_t stack)
{
	uint32_t *number = hash_index_place(&sites->index, stack);

	if (!*number) {
		xalloc_grow(&sites->rows, sites->count, &sites->room, sizeof *sites->rows);
		sites->rows[sites->count] =
			(struct sized_site){ .stack = stack, .least_bytes = UINT64_MAX };
		*number = (uint32_t)++sites->count;
	}
	return &sites->rows[*number - 1];
}

/* Which step most rises have: the one that is left when different ones cancel each other. */
static void vote_step(struct sized_site *site, uint64_t rise)
{
	if (!site->votes)
		site->step_bytes = rise;
	if (rise == site->step_bytes)
		site->votes++;
	else
		site->votes--;
}

static void note_size(struct sized_site *site, uint64_t bytes)
{
	if (site->blocks && bytes != site->last_bytes)
		site->changes++;
	if (site->blocks && bytes > site->last_bytes) {
		site->rises++;
		vote_step(site, bytes - site->last_bytes);
	}
	site->blocks++;
	site->last_bytes = bytes;
	site->least_bytes = least_of(site->least_bytes, bytes);
	site->most_bytes = most_of(site->most_bytes, bytes);
	site->unit_bytes = common_divisor(site->unit_bytes, bytes);
}

/* The second time over the trace: how many rises really were by the step. */
static void count_equal_rises(struct sized_sites *sites, const struct trace *trace)
{
	for (size_t i = 0; i < sites->count; i++)
		sites->rows[i].last_bytes = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		struct sized_site *site;

		if (!is_request(step))
			continue;
		site = sized_of(sites, step->stack);
		site->equal_rises += site->last_bytes &&
				     step->bytes == site->last_bytes + site->step_bytes;
		site->last_bytes = step->bytes;
	}
}

static void sites_read(struct sized_sites *sites, const struct trace *trace)
{
	*sites = (struct sized_sites){ 0 };
	hash_index_init(&sites->index, 256);
	for (size_t i = 0; i < trace->count; i++)
		if (is_request(&trace->steps[i]))
			note_size(sized_of(sites, trace->steps[i].stack), trace->steps[i].bytes);
	count_equal_rises(sites, trace);
}

static void sites_fini(struct sized_sites *sites)
{
	hash_index_fini(&sites->index);
	free(sites->rows);
}

static bool follows_context(const struct sized_site *site)
{
	return site->step_bytes && site->equal_rises >= RISES_MIN &&
	       site->equal_rises * 4 >= site->rises * 3;
}

static bool follows_batch(const struct sized_site *site)
{
	return !follows_context(site) && site->blocks >= BLOCKS_MIN &&
	       site->changes >= CHANGES_MIN && site->least_bytes != site->most_bytes &&
	       site->most_bytes / site->unit_bytes <= MULTIPLE_MOST;
}

/* How far a site's sizes went: steps of the context, or multiples of the batch's unit. */
static uint64_t reached(const struct sized_site *site, bool of_context)
{
	if (of_context)
		return (site->most_bytes - site->least_bytes) / site->step_bytes;
	return site->most_bytes / site->unit_bytes;
}

static uint64_t most_reached(const struct trace *trace, bool of_context, uint64_t *unit_bytes)
{
	struct sized_sites sites;
	uint64_t most = 0;

	sites_read(&sites, trace);
	for (size_t i = 0; i < sites.count; i++) {
		const struct sized_site *site = &sites.rows[i];

		if (!(of_context ? follows_context(site) : follows_batch(site)) ||
		    reached(site, of_context) <= most)
			continue;
		most = reached(site, of_context);
		*unit_bytes = of_context ? site->step_bytes : site->unit_bytes;
	}
	sites_fini(&sites);
	return most;
}

uint64_t context_steps_of(const struct trace *trace)
{
	uint64_t unit_bytes;

	return most_reached(trace, true, &unit_bytes);
}

uint64_t batch_of(const struct trace *trace, uint64_t *unit_bytes)
{
	return most_reached(trace, false, unit_bytes);
}

static struct trace *cap_sizes(const struct trace *trace, double most, bool of_context)
{
	struct trace *changed = trace_copy(trace);
	struct sized_sites sites;

	sites_read(&sites, trace);
	for (size_t i = 0; i < changed->count; i++) {
		struct trace_step *step = &changed->steps[i];
		const struct sized_site *site;
		uint64_t cap = CUF_UNKNOWN;

		if (!is_request(step))
			continue;
		site = sized_of(&sites, step->stack);
		if (of_context && follows_context(site))
			cap = site->least_bytes + (uint64_t)most * site->step_bytes;
		if (!of_context && follows_batch(site))
			cap = (uint64_t)most * site->unit_bytes;
		step->bytes = least_of(step->bytes, cap);
	}
	sites_fini(&sites);
	return changed;
}

struct trace *cap_context(const struct trace *trace, const struct trial *trial,
			  struct arena *arena, const char **why_not)
{
	if (context_steps_of(trace))
		return cap_sizes(trace, trial->argument, true);
	*why_not = "no call site's blocks grow by equal steps";
	return NULL;
}

struct trace *cap_batch(const struct trace *trace, const struct trial *trial, struct arena *arena,
			const char **why_not)
{
	uint64_t unit_bytes;

	if (batch_of(trace, &unit_bytes))
		return cap_sizes(trace, trial->argument, false);
	*why_not = "no call site's blocks come in different multiples of one size";
	return NULL;
}
