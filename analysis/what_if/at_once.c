/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in progress, by thread. A thread's request is what it has taken since it last had as
 * little as ever after its first free: so much stays between two of its requests.
 */
#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/what_if/work.h"

struct worker {
	uint32_t tid;
	uint64_t live_bytes, floor_bytes;
	size_t began;      /* step from which on its request is in progress */
	bool has_freed;
	uint64_t in_progress_bytes;
	bool is_kept;
};

struct workers {
	struct worker *rows;
	size_t count, room;
	struct hash_index index;
	uint32_t *of_block; /* index + 1 of the thread that took a block; 0: not live */
	uint64_t *bytes;
};

static struct worker *worker_of(struct workers *workers, uint32_t tid)
{
	uint32_t *number = hash_index_place(&workers->index, tid);

	if (!*number) {
		xalloc_grow(&workers->rows, workers->count, &workers->room,
			    sizeof *workers->rows);
		workers->rows[workers->count] = (struct worker){ .tid = tid };
		*number = (uint32_t)++workers->count;
	}
	return &workers->rows[*number - 1];
}

static void note_take(struct workers *workers, const struct trace_step *step)
{
	struct worker *worker = worker_of(workers, step->tid);

	worker->live_bytes += step->bytes;
	workers->of_block[step->block] = (uint32_t)(worker - workers->rows) + 1;
	workers->bytes[step->block] = step->bytes;
}

/* The least that a thread ever has after a free is what stays between its requests. */
static void note_give(struct workers *workers, const struct trace_step *step, size_t at)
{
	struct worker *worker;

	if (!workers->of_block[step->block])
		return;
	worker = &workers->rows[workers->of_block[step->block] - 1];
	workers->of_block[step->block] = 0;
	worker->live_bytes = subtract_to_zero(worker->live_bytes, workers->bytes[step->block]);
	if (worker->has_freed && worker->live_bytes > worker->floor_bytes)
		return;
	worker->has_freed = true;
	worker->floor_bytes = worker->live_bytes;
	worker->began = at + 1;
}

/* Steps up to the one that failed. */
static void workers_read(struct workers *workers, const struct trace *trace)
{
	*workers = (struct workers){ 0 };
	hash_index_init(&workers->index, 64);
	workers->of_block = xalloc_zeroed(trace->block_count + 1, sizeof *workers->of_block);
	workers->bytes = xalloc_zeroed(trace->block_count + 1, sizeof *workers->bytes);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];

		if (step->op == TRACE_ALLOC && !(step->flags & TRACE_OLD))
			note_take(workers, step);
		else if (step->op == TRACE_FREE)
			note_give(workers, step, i);
		else if (step->op == TRACE_REFUSED)
			worker_of(workers, step->tid)->is_kept = true;
	}
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		uint32_t owner = step->op == TRACE_ALLOC ? workers->of_block[step->block] : 0;

		if (owner && i >= workers->rows[owner - 1].began)
			workers->rows[owner - 1].in_progress_bytes += step->bytes;
	}
}

static void workers_fini(struct workers *workers)
{
	hash_index_fini(&workers->index);
	free(workers->of_block);
	free(workers->bytes);
	free(workers->rows);
}

static bool is_busy(const struct worker *worker)
{
	return worker->has_freed && worker->in_progress_bytes;
}

size_t threads_at_once(const struct trace *trace)
{
	struct workers workers;
	size_t count = 0;

	workers_read(&workers, trace);
	for (size_t i = 0; i < workers.count; i++)
		count += is_busy(&workers.rows[i]) || workers.rows[i].is_kept;
	workers_fini(&workers);
	return count;
}

/* Those that began first go on; the others have not begun. */
static void keep_first(struct workers *workers, size_t most)
{
	for (size_t kept = 1; kept < most; kept++) {
		struct worker *first = NULL;

		for (size_t i = 0; i < workers->count; i++) {
			struct worker *worker = &workers->rows[i];

			if (!worker->is_kept && is_busy(worker) &&
			    (!first || worker->began < first->began))
				first = worker;
		}
		if (first)
			first->is_kept = true;
	}
}

struct trace *limit_threads(const struct trace *trace, const struct trial *trial,
			    struct arena *arena, const char **why_not)
{
	struct trace *changed;
	struct workers workers;

	if (!trace_refused(trace)) {
		*why_not = "no request failed";
		return NULL;
	}
	workers_read(&workers, trace);
	keep_first(&workers, (size_t)trial->argument);
	changed = trace_copy(trace);
	changed->count = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_step *step = &trace->steps[i];
		uint32_t owner = step->op == TRACE_ALLOC ? workers.of_block[step->block] : 0;
		const struct worker *worker = owner ? &workers.rows[owner - 1] : NULL;

		if (worker && !worker->is_kept && is_busy(worker) && i >= worker->began)
			continue;
		changed->steps[changed->count++] = *step;
	}
	workers_fini(&workers);
	return changed;
}
