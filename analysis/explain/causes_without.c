/* SPDX-License-Identifier: Apache-2.0 */
/* Words for evidence.removals, the best first. */
#include <math.h>
#include <stdlib.h>
#include "analysis/base/units.h"
#include "analysis/base/numbers.h"
#include "analysis/explain/budget.h"

/* More than these is "no limit in sight" too: nobody waits for it. */
#define REQUESTS_MOST 1e9
#define SECONDS_MOST 3e9

static const char *const removal_words[REMOVAL_MAX] = {
	"",
#define ROW(name, words) words,
	REMOVALS(ROW)
#undef ROW
};

/* How far it gets: endless before requests, bytes decide the rest. */
static int by_reach(const void *a, const void *b)
{
	const struct fact_counterfactual *left = a, *right = b;

	if (left->endless != right->endless)
		return right->endless - left->endless;
	if (left->fits != right->fits)
		return right->fits - left->fits;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return 0;
}

/* "12 more requests, 3.1 s"; shorter where something is unknown. */
static const char *extent(const struct facts *facts, const struct fact_counterfactual *fact)
{
	bool counted = isfinite(fact->requests) && fact->requests >= 1;
	const char *time = "";

	if (isfinite(fact->seconds))
		time = arena_format(facts->arena, "%s",
				    units_duration((uint64_t)(fact->seconds * 1e9)).s);
	if (counted)
		return arena_format(facts->arena, "%s more request%s%s%s",
				    units_count((uint64_t)fact->requests).s,
				    fact->requests < 2 ? "" : "s", *time ? ", " : "", time);
	if (*time)
		return arena_format(facts->arena, "%s more at this rate", time);
	return "it would have fitted";
}

/* Requests of the program in so many seconds. Those that were inferred may be single steps. */
static double requests_in(const struct evidence *evidence, double seconds)
{
	const struct fact_requests *requests =
		&evidence->facts->processes[evidence->process].requests;

	if (!requests->count || requests->basis != BASIS_OBSERVED || !(requests->per_s > 0))
		return NAN;
	return requests->per_s * seconds;
}

/* NAN: more than anybody waits for. */
static double at_most(double value, double most)
{
	return value < most ? value : NAN;
}

static struct fact_counterfactual fact_of(const struct evidence *evidence,
					  const struct budget *budget, enum removed what)
{
	double reach = budget_lasts(budget, what);
	double seconds = reach * evidence->demand.seconds;
	struct fact_counterfactual fact = {
		.without = removal_words[what],
		.bytes = evidence->removals[what].bytes,
		.fits = budget_is_enough(budget, what),
		.requests = NAN,
		.seconds = NAN,
	};
	const char *then = "the request would not have fitted either";

	fact.endless = fact.fits && isinf(reach);
	if (fact.endless) {
		then = "no limit in sight";
	} else if (fact.fits) {
		fact.requests = at_most(requests_in(evidence, seconds), REQUESTS_MOST);
		fact.seconds = at_most(seconds, SECONDS_MOST);
		then = extent(evidence->facts, &fact);
	}
	fact.text = arena_format(evidence->facts->arena, "without %s (%s): %s", fact.without,
				 units_bytes(fact.bytes).s, then);
	return fact;
}

/* To remove what the program is for is no option. What would not have been enough is named only
 * where it is most of what was missing. */
static bool is_worth_naming(const struct evidence *evidence, const struct budget *budget,
			    enum removed what)
{
	uint64_t bytes = evidence->removals[what].bytes;

	if (!is_known(bytes) || !bytes || !budget->rows[what].present ||
	    budget_sort_of(what) == BUDGET_PURPOSE)
		return false;
	return budget_is_enough(budget, what) || bytes >= budget->missing / 2;
}

const struct fact_counterfactual *cause_without(const struct evidence *evidence, size_t *count)
{
	struct fact_counterfactual *facts =
		arena_zeroed(evidence->facts->arena, REMOVAL_MAX, sizeof *facts);
	struct budget budget;

	*count = 0;
	if (!evidence->incident || evidence->device == FACT_NONE)
		return facts;
	budget = cause_budget(evidence);
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		if (is_worth_naming(evidence, &budget, what))
			facts[(*count)++] = fact_of(evidence, &budget, what);
	if (*count)
		qsort(facts, *count, sizeof *facts, by_reach);
	return facts;
}

const char *cause_inequality(const struct evidence *evidence, enum removed what)
{
	struct budget budget = cause_budget(evidence);
	uint64_t bytes = evidence->removals[what].bytes;

	if (!is_known(evidence->metrics[METRIC_shortfall]) || !is_known(bytes) || !bytes ||
	    !budget_is_enough(&budget, what) || budget_sort_of(what) == BUDGET_PURPOSE)
		return NULL;
	return arena_format(evidence->facts->arena, "%s was missing; without %s (%s) it fits%s",
			    units_bytes(budget.missing).s, removal_words[what],
			    units_bytes(bytes).s,
			    isinf(budget_lasts(&budget, what)) ? ", and nothing else grows" : "");
}
