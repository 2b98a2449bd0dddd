/* SPDX-License-Identifier: Apache-2.0 */
/* A table of sites by stack id, updated in constant time an event. */
#include "analysis/explain/site_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

enum { HEIGHT_LEAST = 4 };

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

	return number ? &traces->items[number - 1] : NULL;
}

void site_traces_seed(struct site_traces *traces, uint32_t stack, uint64_t bytes)
{
	struct site_trace *s = trace_of(traces, stack);
	s->high = ++s->live;
	s->live_bytes += bytes;
	s->high_bytes = s->live_bytes;
}

/* Few steps are frequent: the rarest gives way, as in the Misra-Gries summary. */
static void count_step(struct site_trace *s, uint64_t step)
{
	size_t rarest = 0;
	for (size_t i = 0; i < SITE_TRACE_STEPS; i++) {
		if (s->steps[i].step == step) {
			s->steps[i].hits++;
			return;
		}
		if (s->steps[i].hits < s->steps[rarest].hits)
			rarest = i;
	}
	if (!s->steps[rarest].hits) {
		s->steps[rarest].step = step;
		s->steps[rarest].hits = 1;
		return;
	}
	s->steps[rarest].hits--;
}

void site_traces_alloc(struct site_traces *traces, const struct cuf_event *event)
{
	struct site_trace *s = trace_of(traces, event->stack);
	if (s->allocs && event->bytes > s->last_bytes) {
		double factor = log((double)event->bytes / (double)(s->last_bytes ? s->last_bytes : 1));
		s->rises++;
		s->log_sum += factor;
		s->log_squares += factor * factor;
		count_step(s, event->bytes - s->last_bytes);
	} else if (s->allocs && event->bytes < s->last_bytes) {
		s->falls++;
	}
	if (!s->allocs)
		s->first_seq = event->seq;
	if (event->bytes > s->most_bytes) {
		s->ladder_count++;
		s->ladder_bytes += event->bytes;
		s->most_bytes = event->bytes;
	}
	s->interleaved += s->live && traces->frees != s->frees_then; /* the first of a wave always comes after frees */
	s->frees_then = traces->frees;
	s->allocs++;
	s->last_seq = event->seq;
	s->last_bytes = event->bytes;
	s->live++;
	s->live_bytes += event->bytes;
	s->high = s->live > s->high ? s->live : s->high;
	s->high_bytes = s->live_bytes > s->high_bytes ? s->live_bytes : s->high_bytes;
	s->thread_bits |= (uint64_t)1 << (event->tid * 2654435761u >> 26);
}

void site_traces_free(struct site_traces *traces, const struct cuf_event *event)
{
	struct site_trace *s = trace_of(traces, event->alloc_stack);
	traces->frees++;
	s->frees++;
	s->live -= s->live > 0;
	s->live_bytes -= event->bytes < s->live_bytes ? event->bytes : s->live_bytes;
	if (s->high >= HEIGHT_LEAST ? s->live * 4 <= s->high : !s->live && s->high_bytes) {
		s->resets++;
		s->peak_before = s->high > s->peak_before ? s->high : s->peak_before;
		s->highest_before_reset = s->high_bytes > s->highest_before_reset ? s->high_bytes : s->highest_before_reset;
		s->high = s->live;
		s->high_bytes = s->live_bytes;
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

bool site_trace_is_geometric(const struct site_trace *trace)
{
	double n = (double)trace->rises, mean, variance;
	uint64_t step;
	if (trace->rises < 6)
		return false;
	mean = trace->log_sum / n;
	variance = trace->log_squares / n - mean * mean;
	return mean > 0.01 && variance < mean * mean / 4 && site_trace_step(trace, &step) * 2 < trace->rises;
}

bool site_trace_is_series(const struct site_trace *trace) { return trace->rises >= 2 && trace->falls * 3 <= trace->rises; }

double site_trace_interleaved(const struct site_trace *trace) { return trace->allocs > 1 ? (double)trace->interleaved / (double)(trace->allocs - 1) : 0; }

unsigned site_trace_threads(const struct site_trace *trace) { return (unsigned)__builtin_popcountll(trace->thread_bits); }
