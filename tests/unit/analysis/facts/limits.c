/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit of the process refused a request of host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analysis/facts/limit.h"
#include "interpose/abi/format.h"

#define MiB ((uint64_t)1 << 20)

static enum fact_limit_kind refused(struct fact_limit address, struct fact_limit data,
				    uint64_t bytes)
{
	struct fact_limit limits[LIMIT_MAX] = { [LIMIT_ADDRESS] = address, [LIMIT_DATA] = data };
	return fact_limit_refused(limits, bytes, false);
}

static const struct fact_limit none = { 400 * MiB, CUF_UNKNOWN }, old = { CUF_UNKNOWN, CUF_UNKNOWN };

static void test_limit__is_the_one_that_left_no_room(void **state)
{
	struct fact_limit tight = { 400 * MiB, 1024 * MiB }, roomy = { 300 * MiB, 4096 * MiB };
	assert_int_equal(refused(tight, none, 800 * MiB), LIMIT_ADDRESS);
	assert_int_equal(refused(none, tight, 800 * MiB), LIMIT_DATA);
	assert_int_equal(refused(tight, roomy, 800 * MiB), LIMIT_ADDRESS);
	assert_int_equal(refused(roomy, tight, 800 * MiB), LIMIT_DATA);
	assert_int_equal(refused(tight, none, 624 * MiB), LIMIT_NONE); /* it would have fitted */
	assert_int_equal(refused(tight, none, 624 * MiB + 1), LIMIT_ADDRESS);
	/* both refuse: the lower one */
	assert_int_equal(refused(roomy, tight, 5000 * MiB), LIMIT_DATA);
	assert_int_equal(refused(tight, roomy, 5000 * MiB), LIMIT_ADDRESS);
}

static void test_limit__small_requests_ask_the_kernel_for_more(void **state)
{
	struct fact_limit full = { 1024 * MiB - 4096, 1024 * MiB }, beyond = { 2, 1 };
	assert_int_equal(refused(full, none, 24), LIMIT_ADDRESS);
	assert_int_equal(refused(beyond, none, 24), LIMIT_ADDRESS); /* lowered since */
}

static void test_limit__what_is_unknown_refuses_nothing(void **state)
{
	struct fact_limit tight = { 400 * MiB, 1024 * MiB };
	assert_int_equal(refused(none, none, UINT64_MAX - 1), LIMIT_NONE);
	assert_int_equal(refused(old, old, 800 * MiB), LIMIT_NONE);
	assert_int_equal(refused(tight, tight, CUF_UNKNOWN), LIMIT_NONE);
}

static void test_limit__addresses_that_were_there_are_not_what_was_refused(void **state)
{
	struct fact_limit limits[LIMIT_MAX] = { [LIMIT_ADDRESS] = { 400 * MiB, 1024 * MiB },
						[LIMIT_DATA] = { 100 * MiB, 2048 * MiB } };
	assert_int_equal(fact_limit_refused(limits, 3000 * MiB, true), LIMIT_DATA);
	assert_int_equal(fact_limit_refused(limits, 800 * MiB, true), LIMIT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit__is_the_one_that_left_no_room),
		cmocka_unit_test(test_limit__small_requests_ask_the_kernel_for_more),
		cmocka_unit_test(test_limit__what_is_unknown_refuses_nothing),
		cmocka_unit_test(test_limit__addresses_that_were_there_are_not_what_was_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
