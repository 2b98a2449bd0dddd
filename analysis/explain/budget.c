/* SPDX-License-Identifier: Apache-2.0 */
/* See budget.h. */
#include "analysis/explain/budget.h"

#include <math.h>
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/thresholds.h"

enum budget_sort budget_sort_of(enum removed what)
{
	switch (what) {
	case REMOVED_LEAK:
	case REMOVED_TENANT:
	case REMOVED_LIBRARIES:
	case REMOVED_STRANDED:
	case REMOVED_LADDER:
	case REMOVED_GAPS: return BUDGET_DEFECT;
	case REMOVED_LOAD: return BUDGET_PURPOSE;
	default: return BUDGET_CONFIGURATION;
	}
}

bool budget_is_enough(const struct budget *budget, enum removed what)
{
	const struct budget_row *row = &budget->rows[what];

	return row->present && (row->stops_growth || row->most >= budget->missing);
}

double budget_lasts(const struct budget *budget, enum removed what)
{
	const struct budget_row *row = &budget->rows[what];
	uint64_t spare = subtract_to_zero(row->most, budget->missing);

	if (row->stops_growth || !budget->grown_bytes)
		return INFINITY;
	if (is_known(budget->to_come) && spare >= budget->to_come)
		return INFINITY;
	if (budget->loaded_bytes &&
	    (double)spare >= LOADED_ENOUGH * (double)budget->loaded_bytes)
		return INFINITY;
	return (double)spare / (double)budget->grown_bytes;
}

static enum budget_sort sort_in(const struct budget *budget, enum removed what)
{
	return budget->rows[what].is_usual ? BUDGET_PURPOSE : budget_sort_of(what);
}

/* The best of those that are enough by themselves. */
static enum removed decide_one(const struct budget *budget)
{
	enum removed best = REMOVED_NOTHING;
	double longest = 0;

	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		if (budget_is_enough(budget, what))
			longest = fmax(longest, budget_lasts(budget, what));
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++) {
		if (!budget_is_enough(budget, what) ||
		    budget_lasts(budget, what) < LASTS_AS_LONG * longest)
			continue;
		if (best == REMOVED_NOTHING || sort_in(budget, what) < sort_in(budget, best))
			best = what;
	}
	return best;
}

/* The larger one of the two is named first. */
static struct budget_verdict decide_pair(const struct budget *budget)
{
	struct budget_verdict verdict = { REMOVED_NOTHING, REMOVED_NOTHING, REMOVED_NOTHING };
	uint64_t least = CUF_UNKNOWN;

	for (enum removed a = REMOVED_NOTHING + 1; a < REMOVAL_MAX; a++)
		for (enum removed b = REMOVED_NOTHING + 1; b < REMOVAL_MAX; b++) {
			const struct budget_row *one = &budget->rows[a], *two = &budget->rows[b];
			uint64_t both;

			if (__builtin_add_overflow(one->most, two->most, &both))
				both = CUF_UNKNOWN - 1; /* of a damaged recording */
			if (a == b || !one->present || !two->present || one->most < two->most ||
			    both < budget->missing || both >= least)
				continue;
			least = both;
			verdict.what = a;
			verdict.with = b;
		}
	return verdict;
}

static struct budget_verdict decide(const struct budget *budget)
{
	enum removed one = decide_one(budget);

	if (one != REMOVED_NOTHING)
		return (struct budget_verdict){ one, REMOVED_NOTHING, REMOVED_NOTHING };
	return decide_pair(budget);
}

/* The same question with one doubtful row at its other end. */
static enum removed decide_without(const struct budget *budget, enum removed what)
{
	struct budget other = *budget;
	struct budget_row *row = &other.rows[what];

	row->most = row->least;
	if (!row->inferred)
		return decide(&other).what;
	row->present = false;
	if (row->or_else != REMOVED_NOTHING && !budget_is_enough(&other, row->or_else))
		other.rows[row->or_else] = (struct budget_row){
			.present = true,
			.most = row->most,
			.stops_growth = row->stops_growth,
		};
	return decide(&other).what;
}

struct budget_verdict budget_decide(const struct budget *budget)
{
	struct budget_verdict verdict = decide(budget);

	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++) {
		const struct budget_row *row = &budget->rows[what];
		enum removed other;

		/* what is too little is too little whatever it is */
		if (!budget_is_enough(budget, what) ||
		    (!row->inferred && row->least == row->most))
			continue;
		other = decide_without(budget, what);
		if (other != verdict.what && other != REMOVED_NOTHING)
			verdict.other = verdict.other ? verdict.other : other;
	}
	return verdict;
}

static size_t needs_of(const struct cause_rule *rule)
{
	size_t count = 0;

	while (count < CAUSE_NEEDS && rule->needs[count].threshold > 0)
		count++;
	return count;
}

/* The rule that names a removal: of those that apply the most particular one, which has most needs;
 * of equal ones the first. */
static const struct cause_rule *rule_of(const struct evidence *evidence, enum removed what,
					bool *inferred)
{
	const struct cause_rule *best = NULL;
	unsigned unknown;

	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		if (rule->removes != what || !(rule->scope & AT_FAILURE) ||
		    !cause_applies(rule, evidence, &unknown) ||
		    (best && needs_of(rule) <= needs_of(best)))
			continue;
		*inferred = unknown ||
			    (rule->named_by && !evidence_holds(evidence, rule->named_by));
		best = rule;
	}
	return best;
}

/* What has this shape, too. */
static enum removed or_else(const struct evidence *evidence, enum removed what)
{
	switch (what) {
	case REMOVED_CONCURRENCY: return REMOVED_CACHE;
	case REMOVED_CACHE: return REMOVED_CONCURRENCY;
	case REMOVED_KV: return REMOVED_SLOTS;
	case REMOVED_WORK:
		return evidence_holds(evidence, SIGNAL_per_slot) ? REMOVED_SLOTS : REMOVED_KV;
	case REMOVED_SLOTS:
	case REMOVED_LOAD: return REMOVED_KV;
	default: return REMOVED_NOTHING;
	}
}

/* No name states what it is, and nothing else has this shape. */
static bool is_plain(const struct evidence *evidence, enum removed what)
{
	switch (what) {
	case REMOVED_LOAD: return evidence->signals[SIGNAL_layered].value >= MOSTLY;
	case REMOVED_WORK:
		return evidence->signals[SIGNAL_over_served].value >= 4 ||
		       (evidence->signals[SIGNAL_over_device].value >= 1 &&
			!is_known(evidence->metrics[METRIC_context]));
	case REMOVED_CACHE: return evidence->signals[SIGNAL_arithmetic].value >= MOSTLY;
	case REMOVED_CONCURRENCY:
		return known_or_zero(evidence->metrics[METRIC_threads]) >= 3 ||
		       evidence_holds(evidence, SIGNAL_at_once);
	default: return false;
	}
}

/* Gaps of any program: little, in pieces far smaller than the request. */
static bool are_usual(const struct evidence *evidence, uint64_t gaps)
{
	const uint64_t *metrics = evidence->metrics;

	return (double)gaps < NOISE_SHARE * (double)known_or_zero(metrics[METRIC_mine]) &&
	       known_or_zero(metrics[METRIC_hole]) <
		       known_or_zero(metrics[METRIC_request]) / PIECES_LEAST;
}

static struct budget_row budget_row_of(const struct evidence *evidence, enum removed what)
{
	const struct removal *removal = &evidence->removals[what];
	struct budget_row row = { 0 };

	row.present = rule_of(evidence, what, &row.inferred) != NULL;
	row.stops_growth = removal->stops_growth;
	row.least = row.most = known_or_zero(removal->bytes);
	/* a limit helps only by what it leaves of the device */
	if (what == REMOVED_CAP && row.most < known_or_zero(evidence->metrics[METRIC_request]))
		row.present = false;
	if (what == REMOVED_GAPS && evidence->incident->fits_if_packed == FACT_CANNOT_TELL)
		row.least = 0;
	if (what == REMOVED_GAPS)
		row.is_usual = are_usual(evidence, row.most);
	if (row.inferred)
		row.inferred = !is_plain(evidence, what);
	row.or_else = or_else(evidence, what);
	return row;
}

/* What belongs to the failed request and would have been requested after it. */
static uint64_t to_come(const struct evidence *evidence)
{
	const uint64_t *metrics = evidence->metrics;
	uint64_t wanted = metrics[METRIC_wanted], family = metrics[METRIC_family];

	if (!evidence_holds(evidence, SIGNAL_kv_prealloc))
		return CUF_UNKNOWN;
	if (!evidence_holds(evidence, SIGNAL_family_next)) /* one buffer is all of the cache */
		return 0;
	if (!is_known(metrics[METRIC_depth]))
		return CUF_UNKNOWN;
	return subtract_to_zero(wanted, family + 1) * metrics[METRIC_unit];
}

struct budget cause_budget(const struct evidence *evidence)
{
	const struct demand *demand = &evidence->demand;
	const uint64_t *metrics = evidence->metrics;
	struct budget budget = { .missing = known_or_zero(metrics[METRIC_shortfall]) };

	if (!budget.missing)
		budget.missing = known_or_zero(metrics[METRIC_request]);
	if (demand->most != DEMAND_NONE && demand->most != DEMAND_WORK)
		budget.grown_bytes = demand->grown_bytes;
	if (demand->most == DEMAND_LOAD)
		budget.loaded_bytes = demand->now_bytes;
	budget.to_come = to_come(evidence);
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		budget.rows[what] = budget_row_of(evidence, what);
	return budget;
}

/* What is no question of memory: it was survived, or another memory was refused. */
static const struct cause_rule *apart(const struct evidence *evidence)
{
	bool inferred;

	return rule_of(evidence, REMOVED_NOTHING, &inferred);
}

/* Any rule of a removal: what it could be otherwise need not apply as it stands. */
static const struct cause_rule *rule_named(const struct evidence *evidence, enum removed what)
{
	bool inferred;
	const struct cause_rule *rule = rule_of(evidence, what, &inferred);

	for (size_t i = 0; !rule && cause_rules[i].id; i++)
		if (cause_rules[i].removes == what)
			rule = &cause_rules[i];
	return rule;
}

/* Nothing is enough: what the program is for does not fit. */
static enum removed purpose(const struct budget *budget)
{
	return budget->rows[REMOVED_WORK].stops_growth ? REMOVED_WORK : REMOVED_LOAD;
}

struct ranking cause_decide(const struct evidence *evidence)
{
	struct ranking ranking = { .best = apart(evidence), .best_score = CAUSE_MOST };
	struct budget_verdict verdict;
	struct budget budget;
	bool inferred;

	if (ranking.best)
		return ranking;
	budget = cause_budget(evidence);
	verdict = budget_decide(&budget);
	if (verdict.what == REMOVED_NOTHING)
		verdict.what = purpose(&budget);
	ranking.best = rule_of(evidence, verdict.what, &inferred);
	ranking.best_score = SURE * evidence->quality;
	if (verdict.other == REMOVED_NOTHING)
		return ranking;
	ranking.best_score = DOUBTED * evidence->quality;
	ranking.next = rule_named(evidence, verdict.other);
	ranking.next_score = GUESSED * evidence->quality;
	return ranking;
}
