/* SPDX-License-Identifier: Apache-2.0 */
/* Words for evidence.removals, the best first. */
#include <math.h>
#include <stdlib.h>
#include "analysis/base/units.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/counterfactual.h"

/* More than these is "no limit in sight" too: nobody waits for it. */
#define REQUESTS_MOST 1e9
#define SECONDS_MOST 3e9

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
static const char *extent(struct build *build, const struct fact_counterfactual *fact)
{
	bool counted = isfinite(fact->requests) && fact->requests >= 1;
	const char *time = "";

	if (isfinite(fact->seconds))
		time = arena_format(build->arena, "%s",
				    units_duration((uint64_t)(fact->seconds * 1e9)).s);
	if (counted)
		return arena_format(build->arena, "%s more request%s%s%s",
				    units_count((uint64_t)fact->requests).s,
				    fact->requests < 2 ? "" : "s", *time ? ", " : "", time);
	if (*time)
		return arena_format(build->arena, "%s more at this rate", time);
	return "it would have fitted";
}

static struct fact_counterfactual fact_of(struct build *build, const struct evidence *evidence,
					  enum removed what)
{
	const struct removal *removal = &evidence->removals[what];
	struct fact_counterfactual fact = {
		.without = removal_words[what],
		.bytes = removal->bytes,
		.fits = removal->fits,
		.endless = removal->fits && isinf(removal->reach),
		.requests = NAN,
		.seconds = NAN,
	};
	const char *then = "the request would not have fitted either";

	if (fact.endless) {
		then = "no limit in sight";
	} else if (fact.fits) {
		if (removal->requests < REQUESTS_MOST)
			fact.requests = removal->requests;
		if (removal->seconds < SECONDS_MOST)
			fact.seconds = removal->seconds;
		then = extent(build, &fact);
	}
	fact.text = arena_format(build->arena, "without %s (%s): %s", fact.without,
				 units_bytes(fact.bytes).s, then);
	return fact;
}

/* What would not have been enough is named only where it is most of what was missing. */
static bool is_worth_naming(const struct evidence *evidence, const struct removal *removal)
{
	uint64_t missing = evidence->metrics[METRIC_shortfall];

	if (removal->bytes == CUF_UNKNOWN || !removal->bytes)
		return false;
	return removal->fits || (missing != CUF_UNKNOWN && removal->bytes >= missing / 2);
}

const struct fact_counterfactual *cause_without(struct build *build,
						const struct evidence *evidence, size_t *count)
{
	struct fact_counterfactual *facts =
		arena_zeroed(build->arena, REMOVAL_MAX, sizeof *facts);

	*count = 0;
	for (enum removed what = REMOVED_NOTHING + 1; what < REMOVAL_MAX; what++)
		if (is_worth_naming(evidence, &evidence->removals[what]))
			facts[(*count)++] = fact_of(build, evidence, what);
	if (*count)
		qsort(facts, *count, sizeof *facts, by_reach);
	return facts;
}
