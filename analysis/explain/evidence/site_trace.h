/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one call site asks for memory, event by event: do its requests grow, by how much, do older
 * blocks stay, does it free everything now and then, how many of its blocks live at once.
 * Contract: heap memory, freed by site_traces_fini; a pointer is good until the next event is
 * taken; a site is a stack id, whatever the kind of its blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/hash_index.h"
#include "interpose/abi/format.h"

#define SITE_TRACE_STEPS 4

struct site_trace {
	uint32_t stack;
	uint64_t allocs, frees;
	uint64_t first_seq, last_seq; /* of its allocations */
	uint64_t last_bytes, most_bytes; /* the latest allocation; the largest before it */
	uint64_t rises, falls; /* allocations larger, smaller than the one before */
	struct {
		uint64_t step, hits;
	} steps[SITE_TRACE_STEPS]; /* by which it rose, the most frequent ones */
	uint64_t near_steps; /* rises by about the most frequent one of then */
	double log_sum, log_squares; /* of the factors by which it rose */
	uint64_t live, live_bytes;
	uint64_t peak_before; /* the most blocks at once before the present rise */
	uint64_t high, high_bytes; /* the most since the last reset */
	uint64_t highest_before_reset; /* the most bytes at any reset */
	uint64_t resets; /* fell to a quarter of a height of at least four blocks, or to nothing */
	/* allocations that were larger than all before them, and their sum */
	uint64_t ladder_count, ladder_bytes;
	uint64_t thread_bits; /* a bit for each thread, by a hash */
	uint64_t frees_then; /* frees of all sites at its last allocation */
	uint64_t work_then; /* the same of blocks that are not small */
	uint64_t among_work; /* its allocations with such frees since the one before */
	/* allocations with frees since the one before, while another of its blocks was live */
	uint64_t interleaved;
	/* frees in a row, so far; such rows; those of several blocks while others stayed */
	uint64_t row, rows, groups;
	/* live bytes at the highest moment numbered peak_number; see site_traces_at_peak */
	uint64_t peak_bytes, peak_number;
};

/* frees: of all sites, so far. Peaks of all sites together are numbered; a site keeps what it held
 * at the last one when it changes afterwards, so that a peak costs nothing for each site. */
struct site_traces {
	uint64_t frees;
	uint64_t small_bytes; /* smaller blocks are churn in any program */
	uint64_t work; /* frees of blocks that are not small */
	uint64_t live_bytes, peak_bytes, peak_number;
	uint64_t peak_ns; /* CLOCK_MONOTONIC or as the events have it */
	uint64_t peaks_until; /* seq: later events make no peak */
	struct site_trace *items;
	size_t count, room;
	struct hash_index index; /* stack to a place in items */
};

void site_traces_init(struct site_traces *traces);
void site_traces_fini(struct site_traces *traces);
/* A block that was there before the first event. */
void site_traces_seed(struct site_traces *traces, uint32_t stack, uint64_t bytes);
void site_traces_alloc(struct site_traces *traces, const struct cuf_event *event);
void site_traces_free(struct site_traces *traces, const struct cuf_event *event);
/* NULL: never seen. */
const struct site_trace *site_traces_of(const struct site_traces *traces, uint32_t stack);

/* What it held when all sites together held most, up to peaks_until. */
uint64_t site_traces_at_peak(const struct site_traces *traces, const struct site_trace *trace);

/* The step by which it rose most often, and how often; 0 hits: it never rose. */
uint64_t site_trace_step(const struct site_trace *trace, uint64_t *step);
/* Of its rises, the share by about that step; 0 where fewer than eight were by just that. */
double site_trace_arithmetic(const struct site_trace *trace);
/* The factors by which it rose are much the same, and not those of equal steps. */
bool site_trace_is_geometric(const struct site_trace *trace);
/* Do its sizes rise step by step, and fall only when it starts anew? */
bool site_trace_is_series(const struct site_trace *trace);
/* Share of its allocations with somebody's frees since the one before: work goes on in between. */
double site_trace_interleaved(const struct site_trace *trace);
unsigned site_trace_threads(const struct site_trace *trace);
/* Of its allocations, the share that was freed. */
double site_trace_freed_share(const struct site_trace *trace);
/* Much of it was freed: rounds of work came and went. */
bool site_trace_repeats(const struct site_trace *trace);
/* Keys and values come from two lines, in blocks of one size, and about as many of them are live. A
 * site is its own twin. */
bool site_trace_is_twin(const struct site_trace *one, const struct site_trace *other);
/* No work in between, or sizes of their own: blocks of requests, and not pages of one. */
bool site_trace_is_at_once(const struct site_trace *trace);
/* Its requests end with several blocks each while others go on: those are pages, as of a cache. */
bool site_trace_is_paged(const struct site_trace *trace);
/* Many blocks at once, as never before, that are freed again: requests served at the same time, by
 * many threads or by an event loop. Of a cache (in_cache), sizes must show that they are not its
 * pages. NULL: no. */
bool site_trace_is_concurrent(const struct site_trace *trace, bool in_cache);
