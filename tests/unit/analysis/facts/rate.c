/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of a row is that of all its call sites, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/facts/totals.h"

#define MiB ((uint64_t)1 << 20)

static struct fact_site site(uint64_t bytes, double per_s, double half)
{
	return (struct fact_site){
		.bytes = bytes,
		.slope_bytes_per_s = per_s,
		.interval = { per_s - half, per_s + half },
		.per_request_bytes = CUF_UNKNOWN,
	};
}

static void test_rate__call_sites_of_a_row_add_up(void **state)
{
	struct fact_rate rate = { 0 };
	struct fact_site one = site(10 * MiB, 4e6, 1e5), other = site(30 * MiB, 12e6, 1e5);

	fact_rate_add(&rate, &one);
	fact_rate_add(&rate, &other);
	assert_int_equal(fact_rate_per_s(&rate), 16000000);
}

static void test_rate__is_not_known_of_a_part_or_roughly(void **state)
{
	struct fact_rate part = { 0 }, rough = { 0 };
	struct fact_site one = site(10 * MiB, 4e6, 1e5), other = site(30 * MiB, NAN, NAN);
	struct fact_site fifth = site(10 * MiB, 4e6, 8e5);

	fact_rate_add(&part, &one);
	fact_rate_add(&part, &other);
	assert_int_equal(fact_rate_per_s(&part), 0);
	fact_rate_add(&rough, &fifth);
	assert_int_equal(fact_rate_per_s(&rough), 0);
}

static void test_rate__of_requests_only_where_they_are_marked(void **state)
{
	struct fact_rate marked = { 0 }, inferred = { 0 };
	struct fact_site one = site(10 * MiB, NAN, NAN);

	one.per_request_bytes = 4096;
	one.cycles_basis = BASIS_OBSERVED;
	fact_rate_add(&marked, &one);
	fact_rate_add(&marked, &one);
	assert_int_equal(fact_rate_per_request(&marked), 8192);
	one.cycles_basis = BASIS_INFERRED;
	fact_rate_add(&inferred, &one);
	assert_int_equal(fact_rate_per_request(&inferred), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate__call_sites_of_a_row_add_up),
		cmocka_unit_test(test_rate__is_not_known_of_a_part_or_roughly),
		cmocka_unit_test(test_rate__of_requests_only_where_they_are_marked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
