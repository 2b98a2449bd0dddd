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
