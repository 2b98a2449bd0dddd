/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes each removal frees, and what that is worth at the rate of growth. */
#include "analysis/explain/evidence/counterfactual.h"

#include <math.h>
#include "analysis/base/numbers.h"

#define PACKED_NOT 0.99  /* below the threshold of every rule that needs gaps to matter */
/* Gaps that would be used up sooner are not the reason: as much growth again, or a quarter of what
 * was loaded. */
#define REACH_LEAST 1
#define LOADED_LEAST 0.25
#define DELAY_LEAST 0.3  /* the weight of a removal that buys nothing */
#define DELAY_MOST 0.6   /* of one that buys as much again */
#define HALF 0.5         /* of what was loaded */

const char *const removal_words[REMOVAL_MAX] = {
	[REMOVED_NOTHING] = "",
	[REMOVED_LEAK] = "the leak",
	[REMOVED_CACHE] = "the growth of the KV cache",
	[REMOVED_CONCURRENCY] = "more requests at once than before",
	[REMOVED_LOAD] = "what is still being loaded",
	[REMOVED_KV] = "the reserved KV cache",
	[REMOVED_WORK] = "a step larger than earlier ones",
	[REMOVED_GAPS] = "the gaps",
	[REMOVED_STRANDED] = "the free memory of other pools",
	[REMOVED_LADDER] = "the smaller blocks of the series",
	[REMOVED_TENANT] = "the other processes",
	[REMOVED_CAP] = "the limit below the device's size",
	[REMOVED_LIBRARIES] = "what libraries allocated",
};

/* What a tenant or libraries hold beyond an ordinary context. */
static uint64_t beyond_context(const uint64_t *metrics, uint64_t bytes)
{
	uint64_t allowance;

	if (!is_known(bytes) || !is_known(metrics[METRIC_total]))
		return CUF_UNKNOWN;
	allowance = least_of(metrics[METRIC_total] / 20, (uint64_t)1 << 30);
	return bytes > allowance ? bytes - allowance : CUF_UNKNOWN;
}

/* The cache or the slots that were reserved in one go. */
static uint64_t reserved(const struct evidence *evidence)
{
	const uint64_t *metrics = evidence->metrics;

	if (evidence_holds(evidence, SIGNAL_kv_done))
		return metrics[METRIC_kv];
	if (evidence_holds(evidence, SIGNAL_kv_prealloc))
		return known_or_zero(metrics[METRIC_family_bytes]) +
		       known_or_zero(metrics[METRIC_request]);
	return CUF_UNKNOWN;
}

static uint64_t part(const struct demand *demand, enum demand_part which)
{
	return demand->by[which] ? demand->by[which] : CUF_UNKNOWN;
}

/* Bytes by which the framework's limit is below what the device has. */
static uint64_t below_device(const struct evidence *evidence)
{
	if (evidence_holds(evidence, SIGNAL_no_driver_call) ||
	    evidence->signals[SIGNAL_room].value >= 1)
		return evidence->metrics[METRIC_free];
	return CUF_UNKNOWN;
}

static uint64_t gaps(const struct evidence *evidence)
{
	const uint64_t *metrics = evidence->metrics;

	if (!is_known(metrics[METRIC_packed]) || !is_known(metrics[METRIC_free]) ||
	    metrics[METRIC_packed] <= metrics[METRIC_free])
		return CUF_UNKNOWN;
	return metrics[METRIC_packed] - metrics[METRIC_free];
}

/* Free elsewhere in this process, where the request could not use it. */
static uint64_t stranded(const struct evidence *evidence)
{
	if (evidence->signals[SIGNAL_stranded].value >= 1 ||
	    evidence_holds(evidence, SIGNAL_foreign_caller) ||
	    evidence->signals[SIGNAL_hole].value >= 1)
		return evidence->metrics[METRIC_slack];
	return CUF_UNKNOWN;
}

static uint64_t freed_without(const struct evidence *evidence, enum removed what)
{
	const uint64_t *metrics = evidence->metrics;
	const struct demand *demand = &evidence->demand;

	switch (what) {
	case REMOVED_LEAK: return metrics[METRIC_leaked];
	case REMOVED_CACHE: return part(demand, DEMAND_CACHE);
	case REMOVED_CONCURRENCY: return part(demand, DEMAND_CONCURRENT);
	case REMOVED_LOAD: return part(demand, DEMAND_LOAD);
	case REMOVED_KV: return reserved(evidence);
	case REMOVED_WORK: return part(demand, DEMAND_WORK);
	case REMOVED_GAPS: return gaps(evidence);
	case REMOVED_STRANDED: return stranded(evidence);
	case REMOVED_LADDER: return metrics[METRIC_kept];
	case REMOVED_TENANT: return beyond_context(metrics, metrics[METRIC_others]);
	case REMOVED_CAP: return below_device(evidence);
	case REMOVED_LIBRARIES: return beyond_context(metrics, metrics[METRIC_rose]);
	default: return CUF_UNKNOWN;
	}
}

/* Did nothing grow that would have gone on growing? A larger step comes once. */
static bool is_steady(const struct demand *demand)
{
	return demand->most == DEMAND_NONE || demand->most == DEMAND_WORK;
}

/* Is this what grew? Without it the earlier moment would only have come again. */
static bool stops_growth(const struct demand *demand, enum removed what)
{
	switch (demand->most) {
	case DEMAND_LEAK: return what == REMOVED_LEAK || what == REMOVED_LADDER;
	case DEMAND_CACHE: return what == REMOVED_CACHE;
	case DEMAND_CONCURRENT: return what == REMOVED_CONCURRENCY;
	case DEMAND_LOAD:
		return what == REMOVED_LOAD || what == REMOVED_KV || what == REMOVED_LADDER ||
		       what == REMOVED_WORK;
	case DEMAND_WORK: return what == REMOVED_WORK;
	default: return false;
	}
}

/* Requests of the program in so many seconds. Those that were inferred may be single steps. */
static double requests_in(const struct build *build, const struct evidence *evidence,
			  double seconds)
{
	const struct fact_requests *requests =
		&build->facts->processes[evidence->process].requests;

	if (!requests->count || requests->basis != BASIS_OBSERVED || !(requests->per_s > 0))
		return NAN;
	return requests->per_s * seconds;
}

static struct removal remove_one(const struct build *build, const struct evidence *evidence,
				 enum removed what)
{
	const struct demand *demand = &evidence->demand;
	uint64_t missing = evidence->metrics[METRIC_shortfall];
	struct removal removal = { freed_without(evidence, what), false, NAN, NAN, NAN };

	if (is_known(missing) && (!missing || what == REMOVED_CAP))
		missing = known_or_zero(evidence->metrics[METRIC_request]);
	if (!is_known(removal.bytes) || !is_known(missing))
		return removal;
	removal.fits = removal.bytes >= missing;
	removal.fits |= stops_growth(demand, what);
	if (removal.fits && (stops_growth(demand, what) || is_steady(demand))) {
		removal.reach = removal.seconds = removal.requests = INFINITY;
	} else if (removal.fits) {
		removal.reach = (double)(removal.bytes - missing) / (double)demand->grown_bytes;
		removal.seconds = removal.reach * demand->seconds;
		removal.requests = requests_in(build, evidence, removal.seconds);
	}
	return removal;
}

/* Of all that was loaded, how much more would have fitted: growth that ends by itself. */
static double of_loaded(const struct demand *demand, const struct removal *removal)
{
	return removal->reach * (double)demand->grown_bytes / (double)demand->now_bytes;
}

double removal_weight(const struct evidence *evidence, enum removed what)
{
	const struct removal *removal = &evidence->removals[what];
	const struct demand *demand = &evidence->demand;

	if (isnan(removal->reach) || isinf(removal->reach))
		return 1;
	if (demand->most == DEMAND_LOAD)
		return DELAY_LEAST +
		       (1 - DELAY_LEAST) * fmin(1, of_loaded(demand, removal) / HALF);
	return DELAY_LEAST + (DELAY_MOST - DELAY_LEAST) * fmin(1, removal->reach);
}

/* Where something grows, gaps that it would have filled soon are not why the request failed. */
static void drop_gaps_that_delay(struct evidence *evidence)
{
	const struct demand *demand = &evidence->demand;
	const struct removal *gaps_closed = &evidence->removals[REMOVED_GAPS];
	double reach = gaps_closed->reach, least = REACH_LEAST;

	if (isnan(reach) || isinf(reach) || !(evidence->signals[SIGNAL_packed].value >= 1))
		return;
	if (demand->most == DEMAND_LOAD) {
		reach = of_loaded(demand, gaps_closed);
		least = LOADED_LEAST;
	}
	if (reach >= least)
		return;
	evidence->signals[SIGNAL_packed].value = PACKED_NOT;
	evidence->signals[SIGNAL_slack].value = 0;
}

void evidence_counterfactual(const struct build *build, struct evidence *evidence)
{
	if (!evidence->incident || evidence->device == FACT_NONE)
		return;
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		evidence->removals[what] = remove_one(build, evidence, what);
	drop_gaps_that_delay(evidence);
}
