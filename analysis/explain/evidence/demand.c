/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the growth of a process's demand by what its call sites do; see demand.h. */
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/explain/evidence/trace.h"

/* Is it one of the call sites that growth/ calls a leak? */
static bool is_leak(const struct evidence *evidence, struct event_pass *pass,
		    const struct site_trace *trace)
{
	for (size_t i = 0; i < evidence->facts->leak_count; i++) {
		const struct fact_site *site = &evidence->facts->leaks[i];

		if (site->class != CLASS_LEAK)
			return false;
		if (site->process == evidence->process && site->device == evidence->device &&
		    stack_site(evidence->facts, site->process, site->stack.id, &pass->keys) ==
		    trace->stack)
			return true;
	}
	return false;
}

/* Does the call site ask for more each time, or hold a cache that does? Its scores and copies grow
 * with the context, as the cache itself does. */
static bool is_cache(const struct event_pass *pass, const struct site_trace *trace)
{
	const struct site_trace *cache = site_traces_of(&pass->sites, pass->grown_cache);

	if (cache && site_trace_is_twin(cache, trace))
		return true;
	return site_trace_freed_share(trace) >= KEPT_MOST &&
	       site_trace_arithmetic(trace) >= MOSTLY;
}

static enum demand_part part_of(const struct evidence *evidence,
				struct event_pass *pass, const struct site_trace *trace)
{
	bool failing = trace->stack == pass->failing;

	if (is_leak(evidence, pass, trace))
		return DEMAND_LEAK;
	if (is_cache(pass, trace))
		return DEMAND_CACHE;
	if (site_trace_is_concurrent(trace, evidence_holds(evidence, SIGNAL_kv_named) ||
						    site_trace_is_paged(trace)) ||
	    (failing && evidence_holds(evidence, SIGNAL_concurrent)))
		return DEMAND_CONCURRENT;
	if ((failing && trace->allocs < 2) || site_trace_freed_share(trace) >= KEPT_MOST)
		return DEMAND_WORK;
	return trace->among_work * 2 > trace->allocs ? DEMAND_KEPT : DEMAND_LOAD;
}

/* The part that grew most; of equal ones the first. */
static enum demand_part largest_part(const struct demand *demand)
{
	enum demand_part most = DEMAND_NONE;

	for (enum demand_part part = DEMAND_NONE + 1; part < DEMAND_MAX; part++)
		if (demand->by[part] > demand->by[most])
			most = part;
	return most;
}

/* What one call site needed more than before; the failed request counts to the site that made it.
 */
static void add_demanded(const struct evidence *evidence, struct event_pass *pass,
			 const struct site_trace *trace, struct demand *demand)
{
	uint64_t before = site_traces_at_peak(&pass->sites, trace), now = trace->live_bytes;

	if (trace->stack == pass->failing)
		now += known_or_zero(evidence->metrics[METRIC_request]);
	if (now > before)
		demand->by[part_of(evidence, pass, trace)] += now - before;
}

/* Loading goes on only if the failed request is part of it; else it had ended. */
static bool is_loading(const struct evidence *evidence, struct event_pass *pass)
{
	const struct site_trace *failing = site_traces_of(&pass->sites, pass->failing);

	return failing && part_of(evidence, pass, failing) == DEMAND_LOAD;
}

struct demand demand_of(const struct evidence *evidence, struct event_pass *pass)
{
	const struct site_traces *sites = &pass->sites;
	uint64_t request = known_or_zero(evidence->metrics[METRIC_request]);
	struct demand demand = {
		.before_bytes = sites->peak_bytes,
		.now_bytes = sites->live_bytes + request,
	};

	if (!evidence->incident || !sites->peak_bytes)
		return demand;
	for (size_t i = 0; i < sites->count; i++)
		add_demanded(evidence, pass, &sites->items[i], &demand);
	if (!site_traces_of(sites, pass->failing))
		demand.by[DEMAND_WORK] += request;
	demand.grown_bytes = subtract_to_zero(demand.now_bytes, demand.before_bytes);
	if ((double)demand.grown_bytes < NOISE_SHARE * (double)demand.before_bytes) {
		demand.grown_bytes = 0;
		return demand;
	}
	for (enum demand_part part = 0; part < DEMAND_MAX; part++)
		demand.by[part] = least_of(demand.by[part], demand.grown_bytes);
	demand.most = largest_part(&demand);
	if (demand.most == DEMAND_LOAD && !is_loading(evidence, pass))
		demand.most = DEMAND_WORK;
	demand.seconds = (double)subtract_to_zero(pass->last_ns, sites->peak_ns) / 1e9;
	return demand;
}
