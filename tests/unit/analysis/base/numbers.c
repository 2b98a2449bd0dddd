/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic at its borders: what recordings say may be any number. */
#include "analysis/base/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_round_up__reaches_the_next_multiple(void **state)
{
	(void)state;
	assert_int_equal(round_up_to(0, 512), 0);
	assert_int_equal(round_up_to(1, 512), 512);
	assert_int_equal(round_up_to(512, 512), 512);
	assert_int_equal(round_up_to(513, 512), 1024);
	assert_int_equal(round_up_to(10, 3), 12);
}

/* It never wraps to a small number: whoever divides by it would divide by 0. */
static void test_round_up__stays_at_the_last_multiple(void **state)
{
	(void)state;
	assert_int_equal(round_up_to(UINT64_MAX, 512), UINT64_MAX - 511);
	assert_int_equal(round_up_to(UINT64_MAX - 511, 512), UINT64_MAX - 511);
	assert_int_equal(round_up_to(UINT64_MAX, 1), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_up__reaches_the_next_multiple),
		cmocka_unit_test(test_round_up__stays_at_the_last_multiple),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
