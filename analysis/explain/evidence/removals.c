/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes each removal frees, and whether it is what grew. */
#include "analysis/explain/evidence/parts.h"

#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/thresholds.h"

/* What a tenant or libraries hold beyond an ordinary context. */
static uint64_t beyond_context(const uint64_t *metrics, uint64_t bytes)
{
	uint64_t allowance;

	if (!is_known(bytes) || !is_known(metrics[METRIC_total]))
		return CUF_UNKNOWN;
	allowance = context_allowance(metrics[METRIC_total]);
	return bytes > allowance ? bytes - allowance : CUF_UNKNOWN;
}

/* The cache or the slots that were reserved in one go. */
static uint64_t reserved(const struct evidence *evidence)
{
	const uint64_t *metrics = evidence->metrics;

	if (evidence_holds(evidence, SIGNAL_kv_done))
		return metrics[METRIC_kv];
	if (evidence_holds(evidence, SIGNAL_family_next))
		return known_or_zero(metrics[METRIC_family_bytes]) +
		       known_or_zero(metrics[METRIC_request]);
	/* in one buffer: equal blocks are something else */
	return evidence_holds(evidence, SIGNAL_kv_prealloc) ? metrics[METRIC_request] : CUF_UNKNOWN;
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

/* What comes and goes with requests grew: there were more at once, or each held more. */
static bool is_crowd(const struct evidence *evidence)
{
	return evidence->signals[SIGNAL_concurrent].value >= 4;
}

static uint64_t comes_and_goes(const struct demand *demand)
{
	uint64_t bytes = demand->by[DEMAND_CACHE] + demand->by[DEMAND_CONCURRENT];

	return bytes ? bytes : CUF_UNKNOWN;
}

static uint64_t freed_without(const struct evidence *evidence, enum removed what)
{
	const uint64_t *metrics = evidence->metrics;
	const struct demand *demand = &evidence->demand;

	switch (what) {
	case REMOVED_LEAK: return metrics[METRIC_leaked];
	case REMOVED_CACHE: return is_crowd(evidence) ? CUF_UNKNOWN : comes_and_goes(demand);
	case REMOVED_CONCURRENCY: return is_crowd(evidence) ? comes_and_goes(demand) : CUF_UNKNOWN;
	case REMOVED_LOAD: return part(demand, DEMAND_LOAD);
	case REMOVED_SLOTS:
		if (!evidence_holds(evidence, SIGNAL_family_next))
			return metrics[METRIC_request];
		return reserved(evidence);
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

/* Is this what grew? Without it the earlier moment would only have come again. */
static bool stops_growth(const struct evidence *evidence, enum removed what)
{
	switch (evidence->demand.most) {
	case DEMAND_LEAK:
	case DEMAND_KEPT: return what == REMOVED_LEAK || what == REMOVED_LADDER;
	case DEMAND_CACHE:
	case DEMAND_CONCURRENT:
		return what == (is_crowd(evidence) ? REMOVED_CONCURRENCY : REMOVED_CACHE);
	case DEMAND_LOAD:
		return what == REMOVED_LOAD || what == REMOVED_KV || what == REMOVED_SLOTS ||
		       what == REMOVED_LADDER;
	case DEMAND_WORK:
		return what == REMOVED_WORK || what == REMOVED_SLOTS ||
		       (what == REMOVED_LOAD && evidence_holds(evidence, SIGNAL_first_large));
	default: return false;
	}
}

void evidence_removals(struct evidence *evidence)
{
	if (!evidence->incident || evidence->device == FACT_NONE)
		return;
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		evidence->removals[what] = (struct removal){ freed_without(evidence, what),
							     stops_growth(evidence, what) };
}
