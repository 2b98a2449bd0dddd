/* SPDX-License-Identifier: Apache-2.0 */
/* What a budget decides, from bytes alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/explain/budget.h"
#include "interpose/abi/format.h"

#define MiB ((uint64_t)1 << 20)
#define GiB ((uint64_t)1 << 30)

/* 100 MiB were missing, and 2 GiB had grown. */
static struct budget growing(enum removed grew)
{
	struct budget budget = { .missing = 100 * MiB,
				 .to_come = CUF_UNKNOWN,
				 .grown_bytes = 2 * GiB };

	budget.rows[grew] = (struct budget_row){ .present = true,
						 .stops_growth = true,
						 .least = 2 * GiB,
						 .most = 2 * GiB };
	return budget;
}

static void add(struct budget *budget, enum removed what, uint64_t bytes)
{
	budget->rows[what] = (struct budget_row){ .present = true, .least = bytes, .most = bytes };
}

static void expect(const struct budget *budget, enum removed what, enum removed with,
		   enum removed other)
{
	struct budget_verdict verdict = budget_decide(budget);

	assert_int_equal(verdict.what, what);
	assert_int_equal(verdict.with, with);
	assert_int_equal(verdict.other, other);
}

static void test_what_grows_is_the_cause_and_all_else_a_delay(void **state)
{
	struct budget budget = growing(REMOVED_LEAK);
	(void)state;

	add(&budget, REMOVED_TENANT, 5 * GiB);
	add(&budget, REMOVED_GAPS, 300 * MiB);
	expect(&budget, REMOVED_LEAK, REMOVED_NOTHING, REMOVED_NOTHING);
	assert_true(isinf(budget_lasts(&budget, REMOVED_LEAK)));
	assert_float_equal(budget_lasts(&budget, REMOVED_TENANT), (5 - 100. / 1024) / 2, 1e-9);
	/* more requests at once, beside a tenant: without the tenant a few more */
	budget = growing(REMOVED_CONCURRENCY);
	add(&budget, REMOVED_TENANT, 2 * GiB);
	expect(&budget, REMOVED_CONCURRENCY, REMOVED_NOTHING, REMOVED_NOTHING);
}

static void test_a_defect_comes_before_what_is_configured(void **state)
{
	struct budget budget = { .missing = 100 * MiB, .to_come = CUF_UNKNOWN };
	(void)state;

	add(&budget, REMOVED_KV, 10 * GiB);
	add(&budget, REMOVED_LOAD, 10 * GiB);
	expect(&budget, REMOVED_KV, REMOVED_NOTHING, REMOVED_NOTHING);
	add(&budget, REMOVED_TENANT, 4 * GiB);
	expect(&budget, REMOVED_TENANT, REMOVED_NOTHING, REMOVED_NOTHING);
	/* too little is no cause, whatever it is */
	add(&budget, REMOVED_TENANT, 99 * MiB);
	expect(&budget, REMOVED_KV, REMOVED_NOTHING, REMOVED_NOTHING);
	/* and neither is a defect that any program has, where something else is enough */
	add(&budget, REMOVED_GAPS, 120 * MiB);
	expect(&budget, REMOVED_GAPS, REMOVED_NOTHING, REMOVED_NOTHING);
	budget.rows[REMOVED_GAPS].is_usual = true;
	expect(&budget, REMOVED_KV, REMOVED_NOTHING, REMOVED_NOTHING);
	budget.rows[REMOVED_KV].present = budget.rows[REMOVED_LOAD].present = false;
	expect(&budget, REMOVED_GAPS, REMOVED_NOTHING, REMOVED_NOTHING);
}

static void test_loading_ends_by_itself(void **state)
{
	struct budget budget = growing(REMOVED_LOAD);
	(void)state;

	budget.loaded_bytes = 10 * GiB;
	add(&budget, REMOVED_TENANT, 6 * GiB);
	expect(&budget, REMOVED_TENANT, REMOVED_NOTHING, REMOVED_NOTHING);
	add(&budget, REMOVED_TENANT, 1 * GiB);
	expect(&budget, REMOVED_LOAD, REMOVED_NOTHING, REMOVED_NOTHING);
	/* it is known how much more was to come */
	budget.to_come = 800 * MiB;
	expect(&budget, REMOVED_TENANT, REMOVED_NOTHING, REMOVED_NOTHING);
	budget.to_come = 950 * MiB;
	expect(&budget, REMOVED_LOAD, REMOVED_NOTHING, REMOVED_NOTHING);
}

static void test_two_that_are_enough_together(void **state)
{
	struct budget budget = { .missing = 100 * MiB, .to_come = CUF_UNKNOWN };
	(void)state;

	add(&budget, REMOVED_GAPS, 40 * MiB);
	add(&budget, REMOVED_TENANT, 70 * MiB);
	add(&budget, REMOVED_LEAK, 65 * MiB);
	expect(&budget, REMOVED_LEAK, REMOVED_GAPS, REMOVED_NOTHING);
	budget.missing = 1 * GiB;
	expect(&budget, REMOVED_NOTHING, REMOVED_NOTHING, REMOVED_NOTHING);
}

static void test_what_is_doubtful_is_decided_both_ways(void **state)
{
	struct budget budget = growing(REMOVED_CONCURRENCY);
	(void)state;

	budget.rows[REMOVED_CONCURRENCY].inferred = true;
	budget.rows[REMOVED_CONCURRENCY].or_else = REMOVED_CACHE;
	expect(&budget, REMOVED_CONCURRENCY, REMOVED_NOTHING, REMOVED_CACHE);
	/* what it may be otherwise has a row without bytes: it has these */
	add(&budget, REMOVED_CACHE, 0);
	expect(&budget, REMOVED_CONCURRENCY, REMOVED_NOTHING, REMOVED_CACHE);
	/* a figure that cannot change the answer raises no doubt */
	budget = growing(REMOVED_LEAK);
	add(&budget, REMOVED_GAPS, 300 * MiB);
	budget.rows[REMOVED_GAPS].least = 0;
	expect(&budget, REMOVED_LEAK, REMOVED_NOTHING, REMOVED_NOTHING);
	budget.grown_bytes = 0;
	add(&budget, REMOVED_LEAK, 10 * MiB);
	add(&budget, REMOVED_WORK, 1 * GiB);
	add(&budget, REMOVED_GAPS, 300 * MiB);
	expect(&budget, REMOVED_GAPS, REMOVED_NOTHING, REMOVED_NOTHING);
	budget.rows[REMOVED_GAPS].least = 50 * MiB;
	expect(&budget, REMOVED_GAPS, REMOVED_NOTHING, REMOVED_WORK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_grows_is_the_cause_and_all_else_a_delay),
		cmocka_unit_test(test_a_defect_comes_before_what_is_configured),
		cmocka_unit_test(test_loading_ends_by_itself),
		cmocka_unit_test(test_two_that_are_enough_together),
		cmocka_unit_test(test_what_is_doubtful_is_decided_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
