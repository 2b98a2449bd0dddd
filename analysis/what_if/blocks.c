/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the sizes of single blocks, and which blocks stay. */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/what_if/work.h"

size_t *frees_of(const struct trace *trace)
{
	size_t *frees = xalloc_zeroed(trace->block_count + 1, sizeof *frees);

	for (uint32_t i = 0; i < trace->block_count; i++)
		frees[i] = SIZE_MAX;
	for (size_t i = 0; i < trace->count; i++)
		if (trace->steps[i].op == TRACE_FREE)
			frees[trace->steps[i].block] = i;
	return frees;
}

/* Marks what was loaded, by number of block. Returns its bytes. */
static uint64_t mark_loaded(const struct trace *trace, bool *is_loaded)
{
	size_t *frees = frees_of(trace);
	bool any_role = false, is_start = true;
	uint64_t bytes = 0;

	for (size_t i = 0; i < trace->count; i++)
		any_role |= trace->steps[i].op == TRACE_ALLOC &&
			    trace->steps[i].role == CUF_ROLE_WEIGHTS;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		is_start &= step->op != TRACE_FREE;
		if (step->op != TRACE_ALLOC || frees[step->block] != SIZE_MAX)
			continue;
		if (any_role ? step->role != CUF_ROLE_WEIGHTS : !is_start)
			continue;
		is_loaded[step->block] = true;
		bytes += step->bytes;
	}
	free(frees);
	return bytes;
}

uint64_t loaded_bytes_of(const struct trace *trace)
{
	bool *is_loaded = xalloc_zeroed(trace->block_count + 1, sizeof *is_loaded);
	uint64_t bytes = mark_loaded(trace, is_loaded);

	free(is_loaded);
	return bytes;
}

static void scale(struct trace_step *step, double share)
{
	step->bytes = most_of((uint64_t)((double)step->bytes * share), 1);
}

struct trace *scale_loaded(const struct trace *trace, const struct trial *trial,
			   struct arena *arena, const char **why_not)
{
	bool *is_loaded = xalloc_zeroed(trace->block_count + 1, sizeof *is_loaded);
	struct trace *changed = trace_copy(trace);

	if (!mark_loaded(trace, is_loaded)) {
		*why_not = "nothing is known to have been loaded at the start";
		trace_free(changed);
		free(is_loaded);
		return NULL;
	}
	for (size_t i = 0; i < changed->count; i++)
		if (changed->steps[i].op == TRACE_ALLOC && is_loaded[changed->steps[i].block])
			scale(&changed->steps[i], trial->argument);
	free(is_loaded);
	return changed;
}

struct trace *scale_kv(const struct trace *trace, const struct trial *trial, struct arena *arena,
		       const char **why_not)
{
	struct trace *changed = trace_copy(trace);
	size_t count = 0;

	for (size_t i = 0; i < changed->count; i++) {
		struct trace_step *step = &changed->steps[i];

		if (step->role != CUF_ROLE_KV ||
		    (step->op != TRACE_ALLOC && step->op != TRACE_REFUSED))
			continue;
		scale(step, trial->argument);
		count++;
	}
	if (count)
		return changed;
	*why_not = "no block is known to be of the KV cache";
	trace_free(changed);
	return NULL;
}

static size_t largest_step(const struct trace *trace)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if ((step->op == TRACE_ALLOC || step->op == TRACE_REFUSED) &&
		    (found == SIZE_MAX || step->bytes > trace->steps[found].bytes))
			found = i;
	}
	return found;
}

uint64_t largest_request_of(const struct trace *trace)
{
	size_t at = largest_step(trace);

	if (at == SIZE_MAX)
		return 0;
	return trace->steps[at].bytes;
}

struct trace *scale_largest(const struct trace *trace, const struct trial *trial,
			    struct arena *arena, const char **why_not)
{
	struct trace *changed = trace_copy(trace);
	size_t at = largest_step(trace);

	if (at == SIZE_MAX) {
		*why_not = "there is no request";
		trace_free(changed);
		return NULL;
	}
	scale(&changed->steps[at], trial->argument);
	return changed;
}
