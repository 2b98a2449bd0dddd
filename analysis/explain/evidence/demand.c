/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the growth of a process's demand by what its call sites do; see demand.h. */
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/evidence/parts.h"
#include "analysis/explain/evidence/trace.h"

#define GREW_LEAST 0.01 /* of what was needed before: less is noise */
#define EQUAL_STEPS_LEAST 0.6 /* of its rises: its sizes follow something that grows */
#define KEPT_MOST 0.1   /* of its allocations: what frees no more than this keeps its blocks */

/* Is it one of the call sites that growth/ calls a leak? */
static bool is_leak(struct build *build, const struct evidence *evidence, struct event_pass *pass,
		    const struct site_trace *trace)
{
	for (size_t i = 0; i < build->facts->leak_count; i++) {
		const struct fact_site *site = &build->facts->leaks[i];

		if (site->class != CLASS_LEAK)
			return false;
		if (site->process == evidence->process && site->device == evidence->device &&
		    stack_site(build, site->process, site->stack.id, &pass->keys) == trace->stack)
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
	       site_trace_arithmetic(trace) >= EQUAL_STEPS_LEAST;
}

static enum demand_part part_of(struct build *build, const struct evidence *evidence,
				struct event_pass *pass, const struct site_trace *trace)
{
	bool failing = trace->stack == pass->failing;

	if (is_leak(build, evidence, pass, trace))
		return DEMAND_LEAK;
	if (is_cache(pass, trace))
		return DEMAND_CACHE;
	if (site_trace_is_concurrent(trace, evidence_holds(evidence, SIGNAL_kv_named)) ||
	    (failing && evidence_holds(evidence, SIGNAL_concurrent)))
		return DEMAND_CONCURRENT;
	if (trace->allocs < 2 || site_trace_freed_share(trace) >= KEPT_MOST)
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
static void add_site(struct build *build, const struct evidence *evidence, struct event_pass *pass,
		     const struct site_trace *trace, struct demand *demand)
{
	uint64_t before = site_traces_at_peak(&pass->sites, trace), now = trace->live_bytes;

	if (trace->stack == pass->failing)
		now += known_or_zero(evidence->metrics[METRIC_request]);
	if (now > before)
		demand->by[part_of(build, evidence, pass, trace)] += now - before;
}

/* Loading goes on only if the failed request is part of it; else it had ended. */
static bool is_loading(struct build *build, const struct evidence *evidence,
		       struct event_pass *pass)
{
	const struct site_trace *failing = site_traces_of(&pass->sites, pass->failing);

	return failing && part_of(build, evidence, pass, failing) == DEMAND_LOAD;
}

struct demand demand_of(struct build *build, const struct evidence *evidence,
			struct event_pass *pass)
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
		add_site(build, evidence, pass, &sites->items[i], &demand);
	if (!site_traces_of(sites, pass->failing))
		demand.by[DEMAND_WORK] += request;
	demand.grown_bytes = subtract_to_zero(demand.now_bytes, demand.before_bytes);
	if ((double)demand.grown_bytes < GREW_LEAST * (double)demand.before_bytes) {
		demand.grown_bytes = 0;
		return demand;
	}
	for (enum demand_part part = 0; part < DEMAND_MAX; part++)
		demand.by[part] = least_of(demand.by[part], demand.grown_bytes);
	demand.most = largest_part(&demand);
	if (demand.most == DEMAND_LOAD && !is_loading(build, evidence, pass))
		demand.most = DEMAND_WORK;
	demand.seconds = (double)subtract_to_zero(pass->last_ns, sites->peak_ns) / 1e9;
	return demand;
}

/* ---- the host ---- */

#define SAMPLES_LEAST 4 /* fewer are no history */

/* Resident memory by whose it is. A figure that was not sampled is 0. */
struct resident {
	uint64_t own, freed, pinned, others;
};

/* Files are no memory of the program, and neither is the recording. */
static struct resident resident_at(const struct fact_sample *sample)
{
	uint64_t rss = known_or_zero(sample->rss_bytes);
	uint64_t live = known_or_zero(sample->host_live_bytes);
	struct resident at = {
		.own = subtract_to_zero(rss, known_or_zero(sample->rss_shared_bytes)),
		.pinned = known_or_zero(sample->pinned_bytes),
		.others = subtract_to_zero(known_or_zero(sample->cgroup_bytes), rss),
	};

	at.freed = subtract_to_zero(at.own, live + at.pinned);
	return at;
}

/* Of what a call site holds, the part that was made since then: its blocks came evenly. */
static uint64_t made_since(const struct fact_site *site, uint64_t since_ns)
{
	uint64_t all = subtract_to_zero(site->last_ns, site->first_ns);
	uint64_t late = subtract_to_zero(site->last_ns, most_of(since_ns, site->first_ns));

	if (!late)
		return 0;
	return (uint64_t)((double)site->bytes * (double)late / (double)all);
}

/* What no other part explains is work. */
static void add_samples(const struct resident *before, const struct resident *now,
			uint64_t freed_most, struct demand *demand)
{
	uint64_t own = subtract_to_zero(now->own, before->own), explained = 0;

	demand->by[DEMAND_PINNED] = subtract_to_zero(now->pinned, before->pinned);
	demand->by[DEMAND_OTHERS] = subtract_to_zero(now->others, before->others);
	demand->by[DEMAND_FREED] =
		least_of(subtract_to_zero(now->freed, before->freed), freed_most);
	demand->before_bytes = before->own + before->others;
	demand->now_bytes = now->own + now->others;
	for (enum demand_part part = DEMAND_NONE + 1; part < DEMAND_MAX; part++)
		if (part != DEMAND_OTHERS)
			explained += demand->by[part];
	demand->by[DEMAND_WORK] = subtract_to_zero(own, explained);
	demand->grown_bytes = most_of(own, explained) + demand->by[DEMAND_OTHERS];
}

/* What the allocator keeps, by its own statistics where they are known. */
static uint64_t freed_at_end(const uint64_t *metrics)
{
	if (metrics[METRIC_host_cached] != CUF_UNKNOWN)
		return metrics[METRIC_host_cached];
	return known_or_zero(metrics[METRIC_host_idle]);
}

void evidence_host_demand(struct build *build, struct evidence *evidence)
{
	const struct fact_process *process = &build->facts->processes[evidence->process];
	const struct fact_sample *samples = process->timeline, *middle, *last;
	struct resident before, now;
	struct demand demand = { 0 };
	uint64_t halfway;

	if (evidence->device != FACT_NONE || process->timeline_count < SAMPLES_LEAST ||
	    (!evidence->incident && process->end != END_OOM_KILLED))
		return;
	last = middle = &samples[process->timeline_count - 1];
	halfway = samples->time_ns + (last->time_ns - samples->time_ns) / 2;
	while (middle > samples && middle->time_ns > halfway)
		middle--;
	for (size_t i = 0; i < build->facts->leak_count; i++) {
		const struct fact_site *site = &build->facts->leaks[i];
		enum demand_part part = evidence_host_part(build, evidence, site);
		if (part != DEMAND_NONE)
			demand.by[part] += made_since(site, middle->time_ns);
	}
	before = resident_at(middle);
	now = resident_at(last);
	add_samples(&before, &now, freed_at_end(evidence->metrics), &demand);
	if (!demand.grown_bytes ||
	    (double)demand.grown_bytes < GREW_LEAST * (double)demand.before_bytes)
		return;
	demand.most = largest_part(&demand);
	demand.seconds = (double)(last->time_ns - middle->time_ns) / 1e9;
	evidence->demand = demand;
}
