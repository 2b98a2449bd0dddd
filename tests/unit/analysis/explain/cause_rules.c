/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for confidence, and the tables: sentences whose figures exist, thresholds, advice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "analysis/explain/causes.h"
#include "analysis/explain/facts_build.h"

static struct evidence nothing(void)
{
	struct evidence e = { .quality = 1 };
	for (enum signal t = 0; t < SIGNAL_MAX; t++)
		e.signals[t].value = NAN;
	return e;
}

static void test_score__is_base_weights_and_what_the_recording_is_worth(void **state)
{
	static const struct cause_rule rule = { .id = "S9.X", .scope = AT_END, .base = 0.5,
		.needs = { { SIGNAL_packed, false, 1, 0 }, { SIGNAL_hole, true, 1, 0 } },
		.tests = { { SIGNAL_sparse, false, 0.5, 0.2 }, { SIGNAL_leak, false, 0.5, -0.3 } } };
	static const struct fact_incident incident;
	struct evidence e = nothing();
	assert_true(cause_score(&rule, &e) == 0); /* the first need must be seen */
	e.signals[SIGNAL_packed].value = 1.5;
	assert_float_equal(cause_score(&rule, &e), 0.5 * CAUSE_UNSEEN, 1e-9);
	e.signals[SIGNAL_hole].value = 0.5;
	assert_float_equal(cause_score(&rule, &e), 0.5, 1e-9);
	e.signals[SIGNAL_sparse].value = 0.6;
	assert_float_equal(cause_score(&rule, &e), 0.7, 1e-9);
	e.quality = 0.8;
	assert_float_equal(cause_score(&rule, &e), 0.56, 1e-9);
	e.quality = 1;
	e.signals[SIGNAL_leak].value = 0.5;
	assert_float_equal(cause_score(&rule, &e), 0.4, 1e-9);
	e.signals[SIGNAL_hole].value = 1;
	assert_true(cause_score(&rule, &e) == 0); /* a need that does not hold */
	e.signals[SIGNAL_hole].value = 0.5;
	e.incident = &incident;
	assert_true(cause_score(&rule, &e) == 0); /* no rule of a failure */
}

/* Every {figure} of a sentence must exist: a misspelt one would be printed as it is. */
static void check_sentence(const char *words)
{
	for (const char *open = words; words && (open = strchr(open, '{')); open++) {
		size_t at = open[1] == '@' ? 2 : 1, bytes = strcspn(open, "}") - at;
		bool found = false;
		for (enum metric f = 0; f < METRIC_MAX; f++)
			found |= strlen(metric_rows[f].name) == bytes &&
			         !memcmp(metric_rows[f].name, open + at, bytes);
		if (!found)
			fail_msg("no figure for: %s", open);
	}
}

static void test_tables__sentences_thresholds_and_advice(void **state)
{
	struct cause_advice advice;
	size_t rows = 0;
	for (enum signal s = 0; s < SIGNAL_MAX; s++) {
		check_sentence(signal_rows[s].words);
		check_sentence(signal_rows[s].words_not);
		assert_string_not_equal(signal_rows[s].words, signal_rows[s].words_not);
	}
	for (const struct cause_rule *r = cause_rules; r->id; r++) {
		bool advised = !strcmp(r->id, "S0");
		bool scored = r->scope & (unsigned)(AT_END | AT_REFUSAL);
		assert_true(r->needs[0].threshold > 0 && r->scope);
		assert_true(scored ? r->base > 0 && r->base < 1 : !r->base);
		/* a removal names what the budget blames */
		assert_true(r->removes != REMOVED_NOTHING || scored || !strcmp(r->id, "S9.H6"));
		assert_true(!*r->about == !*r->source);
		/* a line of the first screen */
		assert_true(strlen(r->name) + strlen(r->id) + strlen(" (, confidence medium)") <=
		            71);
		/* one name for all rows of an id */
		assert_string_equal(cause_named(r->id)->name_id, r->name_id);
		assert_string_equal(cause_named(r->name_id)->id, r->id);
		for (size_t i = 0; i < 3 && r->summaries[i]; i++)
			check_sentence(r->summaries[i]);
		for (const struct cause_test *t = r->tests;
		     t < r->tests + CAUSE_TESTS && t->threshold > 0; t++)
			assert_true(scored ? fabs(t->weight) <= 0.5 && t->weight != 0
			                   : t->weight == CAUSE_SHOWN);
		for (size_t i = 0; cause_advice_row(i, &advice); i++) {
			size_t bytes = strcspn(advice.cause, "*");
			advised |= advice.cause[bytes] ? !strncmp(r->id, advice.cause, bytes)
			                               : !strcmp(r->id, advice.cause);
		}
		if (!advised)
			fail_msg("no advice for %s", r->id);
	}
	for (; cause_advice_row(rows, &advice); rows++)
		check_sentence(advice.words);
	assert_true(rows > 40);
	assert_string_equal(cause_named("s6")->id, "S6.F1");
	assert_string_equal(cause_named("GPU-leak")->id, "S8");
	assert_string_equal(cause_named("fragmentation")->id, "S6.F1");
	assert_null(cause_named("S99"));
	assert_null(cause_named(""));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_score__is_base_weights_and_what_the_recording_is_worth),
		cmocka_unit_test(test_tables__sentences_thresholds_and_advice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
