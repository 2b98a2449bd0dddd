/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the pass over the events into signals; see evidence_trace.h. */
#include "analysis/explain/evidence/trace.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/evidence/thresholds.h"

/* ---- what was freed ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return compare_numbers(left, right);
}

/* The share of allocated bytes that was never freed. Small blocks are not counted. */
static void set_freed(struct evidence *evidence, const struct event_pass *pass)
{
	double kept;

	if (!pass->allocated)
		return;
	kept = 1 - (double)pass->freed / (double)pass->allocated;
	evidence_set(evidence, SIGNAL_nothing_freed, fmax(kept, 0));
	evidence_show(evidence, SIGNAL_nothing_freed, pass->last_seq);
}

/* The first large block of a program is what it loads: nothing can work before. */
static void set_first(struct evidence *evidence, const struct event_pass *pass)
{
	uint64_t total = evidence->metrics[METRIC_total];
	bool named = evidence_holds(evidence, SIGNAL_weights_named);

	if (!evidence->incident || !is_known(total))
		return;
	evidence_set(evidence, SIGNAL_first_large,
		     pass->allocated < total / (named ? FIRST_PART : FIRST_PART_NAMELESS)
			     ? evidence_ratio(evidence->metrics[METRIC_request],
					      most_of(pass->allocated, 1))
			     : 0);
	evidence_show(evidence, SIGNAL_first_large, evidence->incident->seq);
}

/* Is the request far larger than what requests needed before? Freed blocks tell what they did. */
static void set_served(struct evidence *evidence, struct event_pass *pass)
{
	struct freed_sizes *freed = &pass->freed_sizes;
	uint64_t *metrics = evidence->metrics;
	uint64_t request = metrics[METRIC_request], median;
	double ratio = 0;

	if (freed->seen < SERIES_LEAST)
		return;
	qsort(freed->sizes, freed->count, sizeof *freed->sizes, by_value);
	median = freed->sizes[freed->count / 2];
	metrics[METRIC_served] = median;
	metrics[METRIC_served_most] = freed->most;
	if (request != CUF_UNKNOWN && freed->most) {
		if (request >= 2 * freed->most)
			ratio = (double)request / (double)most_of(median, 1);
		evidence_set(evidence, SIGNAL_over_served, ratio);
	}
	if (evidence->incident)
		evidence_show(evidence, SIGNAL_over_served, evidence->incident->seq);
}

/* ---- the family of equal blocks ---- */

/* Did the family come in one burst, after a query of free memory, and is it ever freed? */
static void set_family(struct evidence *evidence, const struct event_pass *pass)
{
	if (!pass->family_first)
		return;
	if (pass->unit_allocs)
		evidence_set(evidence, SIGNAL_family_churn,
			     (double)pass->unit_frees / (double)pass->unit_allocs);
	if (pass->burst_all)
		evidence_set(evidence, SIGNAL_burst,
			     (double)pass->burst_family / (double)pass->burst_all);
	evidence_set(evidence, SIGNAL_after_query, pass->family_query_seq != 0);
	evidence_show(evidence, SIGNAL_after_query, pass->family_query_seq);
	evidence_show(evidence, SIGNAL_after_query, pass->family_first);
}

/* ---- the failing call site: a series of sizes ---- */

/* Sizes that rise by the same number of bytes: a cache that grows token by token. */
static void set_steps(struct evidence *evidence, const struct site_trace *trace)
{
	uint64_t *metrics = evidence->metrics;
	uint64_t step, request = metrics[METRIC_request];
	uint64_t hits = site_trace_step(trace, &step);
	bool next;

	evidence_set(evidence, SIGNAL_arithmetic, site_trace_arithmetic(trace));
	if (!(evidence->signals[SIGNAL_arithmetic].value > 0))
		return;
	metrics[METRIC_step] = step;
	metrics[METRIC_terms] = hits;
	metrics[METRIC_steps_fit] = trace->last_bytes / step;
	if (request != CUF_UNKNOWN)
		metrics[METRIC_steps_fit] = (request - 1) / step;
	next = request != CUF_UNKNOWN && request > trace->last_bytes &&
	       request <= trace->last_bytes + 2 * step;
	evidence_set(evidence, SIGNAL_next_term, next);
}

/* Sizes that rise: by equal steps, by a factor, or once. */
static void set_series(struct evidence *evidence, const struct site_trace *trace)
{
	static const enum signal shown[] = { SIGNAL_arithmetic, SIGNAL_next_term, SIGNAL_longest,
					     SIGNAL_one_request };
	uint64_t *metrics = evidence->metrics;
	uint64_t request = metrics[METRIC_request];

	metrics[METRIC_last] = trace->last_bytes;
	set_steps(evidence, trace);
	if (site_trace_is_geometric(trace))
		metrics[METRIC_series_request] = request;
	if (request != CUF_UNKNOWN)
		evidence_set(evidence, SIGNAL_longest, request > trace->most_bytes);
	else
		evidence_set(evidence, SIGNAL_longest, trace->last_bytes >= trace->most_bytes);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(evidence, shown[i], trace->first_seq);
		evidence_show(evidence, shown[i], trace->last_seq);
	}
}

/* Did the call site free everything between its rises? Then it grows within a request. */
static void set_resets(struct evidence *evidence, const struct site_trace *trace)
{
	bool series = site_trace_is_series(trace);

	if (!series && trace->allocs < 4)
		return;
	evidence_set(evidence, SIGNAL_one_request, !trace->resets);
	if (!series && !trace->resets)
		return;
	evidence->metrics[METRIC_resets] = trace->resets;
	evidence_set(evidence, SIGNAL_sawtooth, (double)trace->resets);
	evidence_show(evidence, SIGNAL_sawtooth, trace->first_seq);
	evidence_show(evidence, SIGNAL_sawtooth, trace->last_seq);
}

/* ---- the failing call site: requests side by side ---- */

/* `back` allocations before the last one. */
static uint64_t size_before(const struct event_pass *pass, size_t back)
{
	return pass->unit_sizes[(pass->unit_size_count - 1 - back) % UNIT_SIZES_MAX];
}

/* After how many allocations the sizes of the failing call site repeat: one unit of work. */
static size_t unit_period(const struct event_pass *pass, size_t count)
{
	for (size_t period = 1; period < count / 2; period++) {
		size_t back = period;
		while (back < count && size_before(pass, back) == size_before(pass, back - period))
			back++;
		if (back == count)
			return period;
	}
	return most_of(count / 2, 1);
}

static uint64_t mapped_bytes(uint64_t bytes)
{
	if (bytes <= CUF_PAGE_BYTES / 2)
		return bytes;
	return round_up_to(bytes, CUF_PAGE_BYTES);
}

static uint64_t divide_up(uint64_t count, uint64_t by)
{
	return (count + by - 1) / by;
}

/*
 * What one unit of work needs, and how many of them fit. before: all blocks as large as the failed
 * request, when earlier units were allocated at other call sites; NULL: the site itself shows.
 * Returns whether a unit is known.
 */
static bool set_unit(struct evidence *evidence, const struct event_pass *pass,
		     const struct site_trace *trace, const struct site_trace *before)
{
	uint64_t *metrics = evidence->metrics, unit = 0, same = 0, room;
	size_t count = pass->unit_size_count;
	size_t period;

	if (count > UNIT_SIZES_MAX)
		count = UNIT_SIZES_MAX;
	period = unit_period(pass, count);
	for (size_t back = 0; back < period && back < count; back++) {
		uint64_t bytes = size_before(pass, back);
		same += bytes == metrics[METRIC_request];
		unit += mapped_bytes(bytes);
	}
	if (!unit || metrics[METRIC_free] == CUF_UNKNOWN)
		return false;
	room = metrics[METRIC_free] + trace->live_bytes + pass->late_bytes;
	/* more than there was room for: sizes without a period, and not one unit of work */
	if (room < unit)
		return false;
	metrics[METRIC_together] = unit;
	metrics[METRIC_together_fit] = room / unit;
	/* the unit of the failed request is one more than those that are there, or fit */
	metrics[METRIC_siblings] = most_of(trace->live / period, room / unit) + 1;
	metrics[METRIC_siblings_before] = divide_up(trace->peak_before, period);
	if (before && same)
		metrics[METRIC_siblings_before] = divide_up(before->peak_before, same);
	return true;
}

/* Returns whether requests were served side by side and a unit of them is known. */
static bool set_siblings(struct evidence *evidence, const struct event_pass *pass,
			 const struct site_trace *trace)
{
	uint64_t *metrics = evidence->metrics;
	const struct site_trace *same_size = site_traces_of(&pass->same_size, 1);
	bool in_cache = evidence_holds(evidence, SIGNAL_kv_named) || site_trace_is_paged(trace);
	bool here = site_trace_is_concurrent(trace, in_cache);
	bool concurrent = here || site_trace_is_concurrent(same_size, in_cache);

	metrics[METRIC_siblings] = CUF_UNKNOWN;
	if (trace->live)
		metrics[METRIC_siblings] = trace->live;
	metrics[METRIC_siblings_before] = trace->peak_before;
	metrics[METRIC_grown] = trace->live_bytes;
	metrics[METRIC_threads] = site_trace_threads(trace);
	evidence_set(evidence, SIGNAL_concurrent, concurrent ? (double)trace->live : 0);
	evidence_show(evidence, SIGNAL_concurrent, trace->first_seq);
	evidence_show(evidence, SIGNAL_concurrent, trace->last_seq);
	evidence_set(evidence, SIGNAL_at_once, site_trace_is_at_once(trace));
	evidence_show(evidence, SIGNAL_at_once, trace->last_seq);
	if (trace->live >= 4 && metrics[METRIC_request] != CUF_UNKNOWN &&
	    metrics[METRIC_free] != CUF_UNKNOWN)
		evidence_set(evidence, SIGNAL_one_fits,
			     metrics[METRIC_free] + trace->live_bytes >= metrics[METRIC_request]);
	evidence_show(evidence, SIGNAL_one_fits, trace->last_seq);
	/* of one round before, nobody knows how many blocks a unit of its work had */
	if (concurrent && !site_trace_repeats(here ? trace : same_size))
		return true;
	return concurrent && set_unit(evidence, pass, trace, here ? NULL : same_size);
}

/* ---- a cache that grows in pieces ---- */

/* Pieces come one by one while other work goes on, and many are freed when a request ends. */
static bool grows_in_pieces(const struct site_trace *trace)
{
	return site_trace_freed_share(trace) >= 0.2 && trace->live >= 4 &&
	       trace->allocs >= PIECES_LEAST;
}

/* A call site filled the device if a tenth of what it holds would have been enough. */
static bool fills_device(const struct evidence *evidence, uint64_t bytes)
{
	uint64_t shortfall = evidence->metrics[METRIC_shortfall];

	return shortfall != CUF_UNKNOWN && shortfall <= bytes / 10;
}

static bool is_at_its_highest(const struct site_trace *trace)
{
	uint64_t highest = trace->high_bytes;

	if (trace->highest_before_reset > highest)
		highest = trace->highest_before_reset;
	return trace->live_bytes >= highest - highest / 20;
}

/* The cache that grew: the one known by name or by its pages, when it leaves nothing for the
 * failing call site, else the failing call site itself. NULL: neither. */
static const struct site_trace *find_grown_cache(const struct evidence *evidence,
						 const struct site_trace *named,
						 const struct site_trace *failing)
{
	if (evidence_holds(evidence, SIGNAL_concurrent))
		return NULL;
	if (named && named != failing && grows_in_pieces(named) && is_at_its_highest(named) &&
	    fills_device(evidence, named->live_bytes))
		return named;
	if (failing && grows_in_pieces(failing) && failing->live >= failing->peak_before &&
	    failing->live_bytes >= failing->highest_before_reset)
		return failing;
	return NULL;
}

static void set_grown_cache(struct evidence *evidence, const struct event_pass *pass,
			    const struct site_trace *cache, bool named)
{
	uint64_t *metrics = evidence->metrics;

	if (!cache)
		return;
	metrics[METRIC_siblings] = metrics[METRIC_grown] = 0;
	for (size_t i = 0; i < pass->sites.count; i++) {
		const struct site_trace *site = &pass->sites.items[i];

		if (!site_trace_is_twin(cache, site))
			continue;
		metrics[METRIC_siblings] += site->live;
		metrics[METRIC_grown] += site->live_bytes;
	}
	if (named)
		evidence->signals[SIGNAL_kv_grown].stack = evidence->kv_stack;
	evidence_set(evidence, SIGNAL_kv_grown, (double)metrics[METRIC_siblings]);
	evidence_show(evidence, SIGNAL_kv_grown, cache->first_seq);
	evidence_show(evidence, SIGNAL_kv_grown, cache->last_seq);
}

/* ---- a pool that outgrows what it keeps ---- */

static bool is_kept(const struct site_trace *trace)
{
	return trace->frees * 4 <= trace->allocs;
}

static bool is_ladder(const struct site_trace *trace)
{
	return trace->ladder_count >= SERIES_LEAST && site_trace_is_series(trace) && is_kept(trace);
}

/* Growing sizes of which the smaller blocks stay: of the failing call site, else of another one
 * that fills the device while the failing one merely asks last. */
static const struct site_trace *find_ladder(const struct evidence *evidence,
					    const struct event_pass *pass,
					    const struct site_trace *failing)
{
	const struct site_trace *first = failing && site_trace_is_series(failing) ? failing : NULL;

	if (!evidence->incident || (first && is_ladder(first)))
		return first;
	for (size_t i = 0; i < pass->sites.count; i++) {
		const struct site_trace *trace = &pass->sites.items[i];
		if (trace->stack != pass->failing && is_ladder(trace) &&
		    site_trace_is_geometric(trace) && fills_device(evidence, trace->ladder_bytes))
			return trace;
	}
	return first;
}

/* Growing sizes of which the smaller blocks stay fill the device with gaps that nothing fits. */
static void set_ladder(struct evidence *evidence, const struct site_trace *trace)
{
	if (!trace)
		return;
	evidence_set(evidence, SIGNAL_geometric, site_trace_is_geometric(trace));
	evidence_show(evidence, SIGNAL_geometric, trace->first_seq);
	evidence_show(evidence, SIGNAL_geometric, trace->last_seq);
	if (trace->ladder_count < 4)
		return;
	evidence->metrics[METRIC_ladder] = trace->ladder_count;
	evidence->metrics[METRIC_kept] = trace->ladder_bytes;
	evidence_set(evidence, SIGNAL_ladder, is_kept(trace) ? (double)trace->ladder_count : 0);
	evidence_show(evidence, SIGNAL_ladder, trace->first_seq);
	evidence_show(evidence, SIGNAL_ladder, trace->last_seq);
}

/* ---- all ---- */

static bool is_slack_unused(const struct evidence *evidence, const struct event_pass *pass)
{
	uint64_t slack = evidence->metrics[METRIC_slack];

	return pass->allocated && slack != CUF_UNKNOWN && pass->freed_all < slack / 4;
}

static const struct site_trace *named_cache(const struct evidence *evidence,
					    struct event_pass *pass)
{
	if (!evidence->kv_stack)
		return NULL;
	return site_traces_of(&pass->sites, stack_site(evidence->facts, evidence->process,
						       evidence->kv_stack, &pass->keys));
}

/* Where no name tells: the largest whose requests end as those of a cache do. NULL: none. */
static const struct site_trace *largest_pages(const struct event_pass *pass,
					      const struct site_trace *failing)
{
	const struct site_trace *most = NULL;

	for (size_t i = 0; i < pass->sites.count; i++) {
		const struct site_trace *site = &pass->sites.items[i];

		if (site != failing && site_trace_is_paged(site) &&
		    !site_trace_is_concurrent(site, true) &&
		    (!most || site->live_bytes > most->live_bytes))
			most = site;
	}
	return most;
}

static struct history set_signals(struct evidence *evidence, struct event_pass *pass)
{
	const struct site_trace *failing = NULL, *named, *grown;
	struct history history = {
		.slack_unused = is_slack_unused(evidence, pass),
		.has_family = pass->family_first != 0,
		.family_after_query = pass->family_query_seq != 0,
		.capture_seq = pass->capture_seq,
	};

	set_freed(evidence, pass);
	set_first(evidence, pass);
	set_served(evidence, pass);
	set_family(evidence, pass);
	if (evidence->incident) {
		failing = site_traces_of(&pass->sites, pass->failing);
		evidence_set(evidence, SIGNAL_new_site, !failing || !failing->allocs);
		evidence_show(evidence, SIGNAL_new_site, evidence->incident->seq);
	}
	if (failing && site_trace_is_series(failing))
		set_series(evidence, failing);
	if (failing)
		set_resets(evidence, failing);
	if (failing && failing->allocs >= 4)
		history.side_by_side = set_siblings(evidence, pass, failing);
	named = named_cache(evidence, pass);
	if (named && named->frees * 10 <= named->allocs)
		named = NULL; /* its blocks stay: it was laid out in advance */
	history.cache_churns = named != NULL;
	if (!evidence->kv_stack)
		named = largest_pages(pass, failing);
	grown = find_grown_cache(evidence, named, failing);
	set_grown_cache(evidence, pass, grown, grown != failing);
	if (grown)
		pass->grown_cache = grown->stack;
	set_ladder(evidence, find_ladder(evidence, pass, failing));
	return history;
}

/* Loading goes on as long as what the process needs more than before are blocks that stay. */
static void set_loads(struct evidence *evidence)
{
	const struct demand *demand = &evidence->demand;

	if (!demand->grown_bytes)
		return;
	evidence->metrics[METRIC_grown_need] = demand->grown_bytes;
	evidence->metrics[METRIC_kept_growth] = demand->by[DEMAND_LOAD];
	evidence_set(evidence, SIGNAL_loads,
		     (double)demand->by[DEMAND_LOAD] / (double)demand->grown_bytes);
	evidence_show(evidence, SIGNAL_loads, evidence->incident->seq);
	evidence_set(evidence, SIGNAL_comes_and_goes,
		     (double)(demand->by[DEMAND_CACHE] + demand->by[DEMAND_CONCURRENT]) /
			     (double)demand->grown_bytes);
	evidence_show(evidence, SIGNAL_comes_and_goes, evidence->incident->seq);
	if (evidence_holds(evidence, SIGNAL_kv_done))
		evidence_set(evidence, SIGNAL_kv_first,
			     evidence_ratio(evidence->metrics[METRIC_kv], demand->grown_bytes));
	evidence_show(evidence, SIGNAL_kv_first, evidence->incident->seq);
}

struct history evidence_trace(struct evidence *evidence, struct event_pass **heard)
{
	struct history history = { 0 };
	struct event_pass *pass;

	if (evidence->device == FACT_NONE ||
	    fact_ordinal_of(&evidence->facts->processes[evidence->process], evidence->device) ==
	    CUF_DEVICE_NONE)
		return history;
	pass = event_pass_for(evidence, heard);
	history = set_signals(evidence, pass);
	evidence->demand = demand_of(evidence, pass);
	set_loads(evidence);
	event_pass_fini(pass);
	return history;
}
