/* SPDX-License-Identifier: Apache-2.0 */
/* One rule: its name, whether it applies, and its score. */
#include "analysis/explain/causes.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Tables end with a test whose threshold is 0. */
static bool is_end(const struct cause_test *test)
{
	return test->threshold <= 0;
}

/* Could the signal be measured at all? */
static bool is_measured(const struct cause_test *test, const struct evidence *evidence)
{
	return !isnan(evidence->signals[test->signal].value);
}

/* An unknown signal is NAN, so both comparisons are false. */
bool cause_holds(const struct cause_test *test, const struct evidence *evidence)
{
	double value = evidence->signals[test->signal].value;

	if (test->below)
		return value < test->threshold;
	return value >= test->threshold;
}

/* Behind the last need; a full array has no end mark. */
const struct cause_test *cause_needs_end(const struct cause_rule *rule)
{
	const struct cause_test *test = rule->needs;

	while (test < rule->needs + CAUSE_NEEDS && !is_end(test))
		test++;
	return test;
}

/* The same for tests. */
const struct cause_test *cause_tests_end(const struct cause_rule *rule)
{
	const struct cause_test *test = rule->tests;

	while (test < rule->tests + CAUSE_TESTS && !is_end(test))
		test++;
	return test;
}

/* Ignores case. Nothing begins with "". */
static bool begins_with(const char *text, const char *start)
{
	return *start && !strncasecmp(text, start, strlen(start));
}

/* By id or slug; a unique beginning is not needed, the first row that fits counts. */
const struct cause_rule *cause_named(const char *name)
{
	const struct cause_rule *begins = NULL;

	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		if (!strcasecmp(rule->id, name) || !strcasecmp(rule->name_id, name))
			return rule;
		if (!begins && (begins_with(rule->id, name) || begins_with(rule->name_id, name)))
			begins = rule;
	}
	return begins;
}

/* At which kind of moment a rule may apply. */
unsigned cause_scope_of(const struct evidence *evidence)
{
	if (!evidence->incident)
		return AT_END;
	return evidence->incident->kind == CUF_KIND_HOST ? AT_REFUSAL : AT_FAILURE;
}

bool cause_applies(const struct cause_rule *rule, const struct evidence *evidence,
		   unsigned *unknown)
{
	*unknown = 0;
	for (const struct cause_test *need = rule->needs; need < cause_needs_end(rule); need++) {
		if (cause_holds(need, evidence))
			continue;
		if (is_measured(need, evidence) || need == rule->needs)
			return false;
		++*unknown;
	}
	return true;
}

/* A need that is known not to hold excludes the rule. One that is unknown lowers its score, unless
 * it is the first: that one defines the cause. */
double cause_score(const struct cause_rule *rule, const struct evidence *evidence)
{
	double score = rule->base, factor = evidence->quality;

	if (!(rule->scope & cause_scope_of(evidence)))
		return 0;
	for (const struct cause_test *need = rule->needs; need < cause_needs_end(rule); need++) {
		if (cause_holds(need, evidence))
			continue;
		if (is_measured(need, evidence) || need == rule->needs)
			return 0;
		factor *= CAUSE_UNSEEN;
	}
	for (const struct cause_test *test = rule->tests; test < cause_tests_end(rule); test++)
		if (cause_holds(test, evidence))
			score += test->weight;
	score *= factor;
	if (score < 0)
		return 0;
	return score > CAUSE_MOST ? CAUSE_MOST : score;
}
