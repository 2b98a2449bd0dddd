/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one site: class, shape and slope. growth.h has the rules in short,
 * README.md in full. */
#include "analysis/growth/growth.h"

#include <math.h>
#include "analysis/base/numbers.h"

enum {
	SLOPES_MAX = 1000, /* sites whose slope is computed: those that grew most */
	THREADS_FEW = 32,  /* blocks at most that may be one for each thread */
	DOUBLINGS_LEAST = 4, /* so that the last block is five times the first, or more */
	DOUBLINGS_PART = 8,  /* of the large blocks: a few sessions may double side by side */
	PART_LEAST = 1 << 20 /* bytes of a site that takes part in the growth of its line */
};

/* The minimum of a site in each window, over time and over the work done. */
struct growth_series {
	double seconds[TREND_MAX]; /* since the first mark */
	double cycle[TREND_MAX];   /* cycles of work since the first mark */
	double bytes[TREND_MAX];
	size_t count;
};

/* The first mark of each window stands for its time. */
static struct growth_series growth_series_of(const struct growth *growth, const struct site *site)
{
	struct growth_series out = { .count = growth->windows };
	const struct site_floor *floor = &growth->floors[site->floor];
	for (uint32_t w = 0; w < growth->windows; w++) {
		uint32_t mark = growth->first_mark[w];
		out.seconds[w] =
			((double)growth->marks[mark].time_ns - (double)growth->marks[0].time_ns) /
			1e9;
		out.cycle[w] = mark * growth->cycles_per_mark;
		out.bytes[w] = (double)floor->least[w];
	}
	return out;
}

/* Blocks may be freed late. Until eight of their lifetimes have passed, a rising minimum may be the
 * first of them. */
static bool outlives_its_blocks(const struct site *site, const struct growth_series *series)
{
	double mean_ms = ratio_or_zero((double)site->freed_age_ms, (double)site->free_count);
	return site->free_count * 10 < site->alloc_count ||
	       series->seconds[series->count - 1] * 1000 >= CYCLES_MIN * mean_ms;
}

/* Sizes that differ are no fixed cost of a thread. */
static bool is_alike(const struct site *site)
{
	return site->most_bytes / 2 <= site->least_bytes;
}

/* Threads share bits: of n threads, 64 (1 - e^(-n/64)) bits are expected to be set (linear
 * counting, Whang and others 1990). */
static uint32_t threads_of(const struct site *site)
{
	double clear = 64 - __builtin_popcountll(site->thread_bits);
	return (uint32_t)lround(-64 * log(fmax(clear, 1) / 64));
}

/* One block for each of a few threads, for as long as they live: a pool that starts threads under
 * load. Threads that come one after another are no such pool. */
static bool is_of_threads(const struct growth *growth, const struct site *site)
{
	unsigned threads = (unsigned)__builtin_popcountll(site->thread_bits);
	return is_alike(site) && site->live_count <= THREADS_FEW && threads > 1 &&
	       threads * 4 >= site->live_count * 3 &&
	       (!growth->threads_most || site->live_count <= growth->threads_most);
}

/* Of a sampled site, chance decides into which half of the time a sample falls. This is one
 * standard deviation of the difference that is tested. */
static double chance_of(const struct site *site, const struct trend_steps *steps)
{
	/* bytes that one sample stands for */
	double sample_bytes = ratio_or_zero(site->live_variance, (double)site->live_bytes);
	return sqrt(sample_bytes * (steps->rise_second_half + steps->rise_first_half / 4));
}

/* How many marks there were before a moment. They are in the order of their times. */
static size_t marks_before(const struct growth *growth, uint64_t ns)
{
	size_t first = 0, end = growth->mark_count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (growth->marks[middle].time_ns < ns)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Earlier rounds of its work may have ended: of one as long, and of what was freed after it, all
 * events may be among those that were overwritten. */
static bool may_have_ended_before(const struct growth *growth, const struct site *site)
{
	size_t mark = marks_before(growth, site->first_ns);

	return mark == growth->mark_count ||
	       growth->lost_events >=
		       growth->events - growth->marks[mark].position + site->live_count;
}

/* It has no block from before the first event that was kept. A leak leaves blocks of all ages. */
static bool is_all_young(const struct growth *growth, const struct site *site)
{
	return growth->lost_events &&
	       signed_up_to(site->live_bytes, INT64_MAX) <= site->net_bytes &&
	       may_have_ended_before(growth, site);
}

/* All the conditions of growth.h. Each one excludes a pattern that grows without being a leak. */
static bool is_leak(const struct growth *growth, const struct site *site,
		    const struct growth_series *series, const struct trend_steps *steps)
{
	double floor_then = series->bytes[series->count * 3 / 4] - series->bytes[0];
	return !site->holds_blocks && !is_of_threads(growth, site) && !is_all_young(growth, site) &&
	       growth->work_cycles >= CYCLES_MIN &&
	       series->count > CYCLES_MIN && steps->ups >= CYCLES_MIN - 1 &&
	       steps->quarters_with_ups == 4 && /* it rose in at least 8 cycles, all along */
	       steps->fall <= steps->rise / 10 && /* and stayed */
	       steps->rise_second_half + chance_of(site, steps) >=
		       steps->rise_first_half / 2 && /* no plateau */
	       outlives_its_blocks(site, series) &&
	       (!growth->births ||
		(double)site->old_bytes >= floor_then / 2); /* of blocks that are still the same */
}

/* The first step may be of many cycles, too small next to later ones to be found. Then it is left
 * out. Returns the number of points to skip. */
static size_t lumped(const struct growth_series *series)
{
	struct trend_steps rest;
	if (series->count <= CYCLES_MIN + 2)
		return 0;
	rest = trend_steps(series->bytes + 1, series->count - 1);
	return rest.ups && series->bytes[1] - series->bytes[0] > 4 * rest.rise / (double)rest.ups;
}

static bool is_judged_by_age(const struct growth *growth, const struct site *site)
{
	return growth->survivals && !site->holds_blocks && !is_of_threads(growth, site);
}

static struct survival_growth survival_of(const struct growth *growth, const struct site *site)
{
	if (!is_judged_by_age(growth, site))
		return (struct survival_growth){ SURVIVAL_NOTHING, NAN, NAN, NAN, NAN };
	return survival_judge(&growth->survivals[site->floor], &growth->all, &growth->time,
			      growth->is_failure);
}

/* Of its line of the program, where the site is large enough to have a part in its growth. */
static enum survival_verdict survival_of_line(const struct growth *growth, const struct site *site)
{
	if (!growth->pools || !is_judged_by_age(growth, site) || site->live_bytes < PART_LEAST)
		return SURVIVAL_NOTHING;
	return survival_judge(&growth->pools[growth->pool_of_floor[site->floor]], &growth->all,
			      &growth->time, growth->is_failure)
		.verdict;
}

/* Whether rises and falls are those of the program. Those of a sample are chance. */
static bool cycles_prove(const struct growth *growth)
{
	return !growth->by_age || growth->is_marked || !growth->is_sampled;
}

/* A leak or growing; else CLASS_LIVE. */
static enum fact_class class_by_growth(const struct growth *growth, enum survival_verdict survival,
				       bool has_leaked)
{
	if ((has_leaked && cycles_prove(growth)) || survival == SURVIVAL_LASTING)
		return CLASS_LEAK;
	if (survival == SURVIVAL_GROWING || (has_leaked && growth->is_failure))
		return CLASS_GROWING;
	return CLASS_LIVE;
}

/* A rise that has ended is no leak: the site filled a cache, or the program's state. */
static enum fact_class class_by_shape(const struct site *site, const struct trend_steps *steps,
				      double rise)
{
	if (rise <= 0)
		return CLASS_LIVE;
	if (steps->rise_second_half > rise / 20)
		return CLASS_RETAINED;
	if (site->late_allocs && site->free_count) /* it still replaces blocks, at its full size */
		return CLASS_BOUNDED_CACHE;
	return CLASS_LIVE;
}

/* A site that does not rise from cycle to cycle is live, unless its blocks' ages tell otherwise:
 * all cycles may be of the start. What its line does is no matter to a cache that stands still. */
static enum fact_class class_of(const struct growth *growth, const struct site *site,
				const struct growth_series *series)
{
	size_t first = lumped(series);
	struct trend_steps steps = trend_steps(series->bytes + first, series->count - first);
	bool has_leaked = is_leak(growth, site, series, &steps);
	enum fact_class grows = class_by_growth(growth, survival_of(growth, site).verdict,
						has_leaked), shape;
	double rise = 0;
	if (series->count > 1)
		rise = series->bytes[series->count - 1] - series->bytes[0];
	shape = class_by_shape(site, &steps, rise);
	if (grows == CLASS_LIVE && shape != CLASS_BOUNDED_CACHE)
		grows = class_by_growth(growth, survival_of_line(growth, site), has_leaked);
	return grows == CLASS_LIVE ? shape : grows;
}

unsigned growth_may_leak(const struct growth *growth)
{
	const struct site *largest = NULL;

	for (size_t i = 0; growth->work_cycles >= CYCLES_MIN && i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		if (site->floor != SITE_NONE && site->net_bytes > 0 &&
		    site->alloc_count >= site->free_count + CYCLES_MIN &&
		    (!largest || site->net_bytes > largest->net_bytes))
			largest = site;
	}
	return largest ? largest->device : CUF_DEVICE_NONE;
}

bool growth_asks_births(const struct growth *growth, uint64_t resolution_ns)
{
	if (growth->mark_count < 2 ||
	    growth->marks[growth->mark_count - 1].time_ns - growth->marks[0].time_ns <=
		    resolution_ns * 64)
		return false;
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		struct growth_series series;
		if (site->floor == SITE_NONE)
			continue;
		series = growth_series_of(growth, site);
		if (class_of(growth, site, &series) == CLASS_LEAK)
			return true;
	}
	return false;
}

/*
 * A site of equal blocks adds whole ones. A slope near a whole number of blocks is that number, as
 * some cycles were missed. Inferred cycles may be a half or a third of a request or two requests;
 * a site that adds one block each time is more reliable. A slope that is not known to a tenth is
 * not stated.
 */
static uint64_t per_cycle_bytes(const struct growth *growth, const struct site *site,
				const struct trend_slope *slope)
{
	double blocks = ratio_or_zero(slope->slope, (double)site->most_bytes);
	if (site->least_bytes == site->most_bytes && blocks >= 0.75 &&
	    fabs(blocks - round(blocks)) < 0.25)
		return site->most_bytes * (uint64_t)llround(blocks);
	if (site->least_bytes == site->most_bytes && !growth->is_marked && blocks >= 0.2 &&
	    blocks < 1.75)
		return site->most_bytes;
	if (!(slope->high - slope->low <= slope->slope / 5))
		return CUF_UNKNOWN;
	return (uint64_t)llround(slope->slope);
}

/* The first third may have been filled at once. */
static double pace_of(const struct growth_series *series)
{
	size_t last = series->count - 1, third = series->count / 3;
	double middle, end;
	if (series->count <= CYCLES_MIN)
		return NAN;
	middle = series->bytes[last - third] - series->bytes[third];
	end = series->bytes[last] - series->bytes[last - third];
	if (!(middle > 0))
		return NAN;
	return end / middle * (double)(last - 2 * third) / (double)third;
}

/* Of the cycles, those since a moment. */
static uint64_t cycles_since(const struct growth *growth, uint64_t ns)
{
	if (!growth->work_cycles || !is_known(ns))
		return growth->work_cycles;
	return least_of((uint64_t)llround((double)(growth->mark_count - marks_before(growth, ns)) *
					   growth->cycles_per_mark), growth->work_cycles);
}

/* The class of a site that has floors, its shape and its rates. */
static void judge_series(const struct growth *growth, const struct site *site,
			 struct fact_site *out)
{
	struct trend_slope slope = { NAN, NAN, NAN }, per_cycle = slope;
	struct growth_series series = growth_series_of(growth, site);
	struct survival_growth survival = survival_of(growth, site);
	bool is_shown;

	out->class = class_of(growth, site, &series);
	out->shape = trend_shape(series.bytes, series.count);
	/* thousands of pairs each, so only for sites that a report shows */
	is_shown = out->class == CLASS_LEAK || site->floor < SLOPES_MAX;
	if (is_shown)
		slope = trend_slope(series.seconds, series.bytes, series.count);
	/* of a site that was not sampled, cycles give a figure even where they prove no leak */
	if (is_shown && growth->work_cycles && (cycles_prove(growth) || !(site->live_variance > 0)))
		per_cycle = trend_slope_whole(series.cycle, series.bytes, series.count);
	if (per_cycle.slope > 0)
		out->per_request_bytes = per_cycle_bytes(growth, site, &per_cycle);
	out->pace = pace_of(&series);
	if (!isnan(survival.bytes_per_s) && out->class <= CLASS_GROWING) {
		slope = (struct trend_slope){ survival.bytes_per_s, survival.low, survival.high };
		out->pace = survival.pace;
	}
	out->slope_bytes_per_s = slope.slope;
	out->interval[0] = slope.low;
	out->interval[1] = slope.high;
}

/* What came and went since the site's work began: without it there was one pass, and no turns. */
static uint64_t churn_of(const struct growth *growth, const struct site *site)
{
	double freed = 0;
	if (!growth->survivals)
		return CUF_UNKNOWN;
	/* start-up may end in the part in which the work begins */
	for (unsigned part = survival_begin(&growth->survivals[site->floor]) + 1;
	     part < SURVIVAL_PARTS; part++)
		freed += growth->all.parts[part].freed_bytes;
	return (uint64_t)freed;
}

void growth_judge(const struct growth *growth, const struct site *site, struct fact_site *out)
{
	int64_t live = signed_up_to(site->live_bytes, INT64_MAX), before = 0;
	if (live > site->net_bytes) /* held before the first event */
		before = live - site->net_bytes;
	*out = (struct fact_site){
		.stack = { .id = site->stack },
		.kind = site->kind,
		.class = CLASS_LIVE,
		.holds_blocks = site->holds_blocks,
		.bytes = site->live_bytes,
		.count = site->live_count,
		.basis = site->live_variance > 0 ? BASIS_ESTIMATED : BASIS_OBSERVED,
		.interval = { NAN, NAN },
		.slope_bytes_per_s = NAN,
		.pace = NAN,
		.per_request_bytes = CUF_UNKNOWN,
		.cycles = growth->work_cycles,
		.own_cycles = cycles_since(growth, site->first_ns),
		.peak_bytes = (uint64_t)before + (uint64_t)site->highest_bytes,
		.alloc_count = site->alloc_count,
		.alloc_bytes = site->alloc_bytes,
		.free_count = site->free_count,
		.threads = threads_of(site),
		.is_alike = is_alike(site),
		.is_doubling = site->doublings >= DOUBLINGS_LEAST &&
			       site->doublings * DOUBLINGS_PART >= site->large_blocks,
		.largest_bytes = site->most_bytes,
		.first_ns = site->first_ns,
		.last_ns = site->last_ns,
		.grown_bytes = (double)site->net_bytes,
		.rounds = site->rounds,
		.before_bytes = (uint64_t)site->before_bytes,
		.churn_bytes = CUF_UNKNOWN,
	};
	if (growth->work_cycles)
		out->cycles_basis = growth->is_marked ? BASIS_OBSERVED : BASIS_INFERRED;
	if (site->floor == SITE_NONE || !growth->windows)
		return;
	judge_series(growth, site, out);
	out->churn_bytes = churn_of(growth, site);
}
