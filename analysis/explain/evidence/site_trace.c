/* SPDX-License-Identifier: Apache-2.0 */
/* A table of sites by stack id, updated in constant time an event. */
#include "analysis/explain/evidence/site_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/explain/evidence/thresholds.h"

void site_traces_init(struct site_traces *traces)
{
	*traces = (struct site_traces){ 0 };
	hash_index_init(&traces->index, 0);
}

void site_traces_fini(struct site_traces *traces)
{
	free(traces->items);
	hash_index_fini(&traces->index);
}

/* Finds or makes the row. The pointer is valid until the next call. */
static struct site_trace *trace_of(struct site_traces *traces, uint32_t stack)
{
	uint32_t *number = hash_index_place(&traces->index, stack);

	if (*number)
		return &traces->items[*number - 1];
	xalloc_grow(&traces->items, traces->count, &traces->room, sizeof *traces->items);
	traces->items[traces->count++] = (struct site_trace){ .stack = stack };
	*number = (uint32_t)traces->count;
	return &traces->items[traces->count - 1];
}

const struct site_trace *site_traces_of(const struct site_traces *traces, uint32_t stack)
{
	uint32_t number = hash_index_find(&traces->index, stack);

	if (!number)
		return NULL;
	return &traces->items[number - 1];
}

/* Before a change: what the site held at the last peak, unless it is kept already. */
static void keep_peak(const struct site_traces *traces, struct site_trace *trace)
{
	if (trace->peak_number == traces->peak_number)
		return;
	trace->peak_bytes = trace->live_bytes;
	trace->peak_number = traces->peak_number;
}

uint64_t site_traces_at_peak(const struct site_traces *traces, const struct site_trace *trace)
{
	if (trace->peak_number == traces->peak_number)
		return trace->peak_bytes;
	return trace->live_bytes;
}

/* After a rise of all sites together. */
static void note_peak(struct site_traces *traces, const struct cuf_event *event)
{
	if (traces->live_bytes <= traces->peak_bytes || event->seq > traces->peaks_until)
		return;
	traces->peak_bytes = traces->live_bytes;
	traces->peak_ns = event->time_ns;
	traces->peak_number++;
}

void site_traces_seed(struct site_traces *traces, uint32_t stack, uint64_t bytes)
{
	struct site_trace *trace = trace_of(traces, stack);
	traces->live_bytes += bytes;
	trace->high = ++trace->live;
	trace->live_bytes += bytes;
	trace->high_bytes = trace->live_bytes;
}

/* Few steps are frequent: the rarest gives way, as in the Misra-Gries summary. */
static void count_step(struct site_trace *trace, uint64_t step)
{
	size_t rarest = 0;
	for (size_t i = 0; i < SITE_TRACE_STEPS; i++) {
		if (trace->steps[i].step == step) {
			trace->steps[i].hits++;
			return;
		}
		if (trace->steps[i].hits < trace->steps[rarest].hits)
			rarest = i;
	}
	if (!trace->steps[rarest].hits) {
		trace->steps[rarest].step = step;
		trace->steps[rarest].hits = 1;
		return;
	}
	trace->steps[rarest].hits--;
}

/* Is it about as large as the most frequent step so far? A block of PyTorch's is larger than the
 * request by up to 1 MiB that was not split off. */
static bool is_near_step(const struct site_trace *trace, uint64_t rise)
{
	uint64_t step, rest;

	if (!site_trace_step(trace, &step))
		return false;
	rest = least_of(step / NEAR_PART, FEW_BYTES);
	return rise - step + rest <= 2 * rest;
}

/* A rise or fall is relative to the allocation before, of any thread. */
void site_traces_alloc(struct site_traces *traces, const struct cuf_event *event)
{
	struct site_trace *trace = trace_of(traces, event->stack);
	keep_peak(traces, trace);
	if (trace->allocs && event->bytes > trace->last_bytes) {
		double factor = log((double)event->bytes /
				    (double)most_of(trace->last_bytes, 1));
		trace->rises++;
		trace->log_sum += factor;
		trace->log_squares += factor * factor;
		count_step(trace, event->bytes - trace->last_bytes);
		trace->near_steps += is_near_step(trace, event->bytes - trace->last_bytes);
	} else if (trace->allocs && event->bytes < trace->last_bytes) {
		trace->falls++;
	}
	if (!trace->allocs)
		trace->first_seq = event->seq;
	if (event->bytes > trace->most_bytes) {
		trace->ladder_count++;
		trace->ladder_bytes += event->bytes;
		trace->most_bytes = event->bytes;
	}
	/* The first block of a wave always comes after frees, so it does not count. */
	trace->interleaved += trace->live && traces->frees != trace->frees_then;
	trace->frees_then = traces->frees;
	trace->rows += trace->row > 0;
	trace->groups += trace->row >= REPEATS_LEAST && trace->live;
	trace->row = 0;
	trace->among_work += trace->allocs && traces->work != trace->work_then;
	trace->work_then = traces->work;
	trace->allocs++;
	trace->last_seq = event->seq;
	trace->last_bytes = event->bytes;
	trace->live++;
	trace->live_bytes += event->bytes;
	trace->high = most_of(trace->live, trace->high);
	trace->high_bytes = most_of(trace->live_bytes, trace->high_bytes);
	trace->thread_bits |= (uint64_t)1 << (event->tid * 2654435761u >> 26);
	traces->live_bytes += event->bytes;
	note_peak(traces, event);
}

/* Did the site just fall to a quarter of its height, or from a small height to nothing? */
static bool is_reset(const struct site_trace *trace)
{
	if (trace->high >= REPEATS_LEAST)
		return trace->live * 4 <= trace->high;
	return !trace->live && trace->high_bytes;
}

void site_traces_free(struct site_traces *traces, const struct cuf_event *event)
{
	struct site_trace *trace = trace_of(traces, event->alloc_stack);
	keep_peak(traces, trace);
	traces->frees++;
	traces->work += event->bytes >= traces->small_bytes;
	trace->frees++;
	trace->row++;
	trace->live -= trace->live > 0;
	traces->live_bytes -= least_of(event->bytes, traces->live_bytes);
	trace->live_bytes -= least_of(event->bytes, trace->live_bytes);
	if (is_reset(trace)) {
		trace->resets++;
		trace->peak_before = most_of(trace->high, trace->peak_before);
		trace->highest_before_reset = most_of(trace->high_bytes,
						      trace->highest_before_reset);
		trace->high = trace->live;
		trace->high_bytes = trace->live_bytes;
	}
}

uint64_t site_trace_step(const struct site_trace *trace, uint64_t *step)
{
	uint64_t hits = 0;
	*step = 0;
	for (size_t i = 0; i < SITE_TRACE_STEPS; i++)
		if (trace->steps[i].hits > hits) {
			hits = trace->steps[i].hits;
			*step = trace->steps[i].step;
		}
	return hits;
}

double site_trace_arithmetic(const struct site_trace *trace)
{
	uint64_t step;

	if (site_trace_step(trace, &step) < SERIES_LEAST)
		return 0;
	return (double)trace->near_steps / (double)trace->rises;
}

/* The variance of the logarithm is small for doubling; equal steps are excluded by their count. */
bool site_trace_is_geometric(const struct site_trace *trace)
{
	double n = (double)trace->rises, mean, variance;
	uint64_t step;
	if (trace->rises < 6)
		return false;
	mean = trace->log_sum / n;
	variance = trace->log_squares / n - mean * mean;
	return mean > 0.01 && variance < mean * mean / 4 &&
	       site_trace_step(trace, &step) * 2 < trace->rises;
}

bool site_trace_is_series(const struct site_trace *trace)
{
	return trace->rises >= 2 && trace->falls * 3 <= trace->rises;
}

double site_trace_interleaved(const struct site_trace *trace)
{
	if (trace->allocs <= 1)
		return 0;
	return (double)trace->interleaved / (double)(trace->allocs - 1);
}

unsigned site_trace_threads(const struct site_trace *trace)
{
	return (unsigned)__builtin_popcountll(trace->thread_bits);
}

double site_trace_freed_share(const struct site_trace *trace)
{
	if (!trace->allocs)
		return 0;
	return (double)trace->frees / (double)trace->allocs;
}

/* Blocks of requests have sizes of their own; pages of one cache are equal, or grow. */
static bool has_own_sizes(const struct site_trace *trace)
{
	return trace->rises * 4 >= trace->allocs && trace->falls * 4 >= trace->allocs;
}

bool site_trace_is_at_once(const struct site_trace *trace)
{
	return has_own_sizes(trace) || site_trace_interleaved(trace) < 0.1;
}

bool site_trace_repeats(const struct site_trace *trace)
{
	return site_trace_freed_share(trace) >= 0.4;
}

bool site_trace_is_paged(const struct site_trace *trace)
{
	return trace->rows >= SERIES_LEAST && trace->groups * 2 >= trace->rows;
}

bool site_trace_is_concurrent(const struct site_trace *trace, bool in_cache)
{
	bool burst;

	if (!trace || trace->live < 4 || trace->live < trace->peak_before)
		return false;
	burst = site_trace_interleaved(trace) < 0.3 && (!in_cache || has_own_sizes(trace));
	/* one round, which it freed, and then several times as much at once */
	if (burst && trace->resets && trace->live >= 2 * trace->peak_before)
		return true;
	if (!site_trace_repeats(trace))
		return false;
	return site_trace_threads(trace) >= 3 || (burst && trace->resets >= 2);
}

bool site_trace_is_twin(const struct site_trace *one, const struct site_trace *other)
{
	return one == other ||
	       (one->last_bytes == other->last_bytes && one->live <= 2 * other->live &&
		other->live <= 2 * one->live);
}
