/* SPDX-License-Identifier: Apache-2.0 */
/* What one call site asked for: sizes that rise by equal steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/evidence/site_trace.h"

#define MiB ((uint64_t)1 << 20)

enum { SITE = 7, TOKENS = 80, STEP_MIB = 28 };

/* A cache of so many tokens, each time as large as asked plus rest_of(token). */
static double arithmetic_of(uint64_t (*rest_of)(uint64_t token))
{
	struct site_traces traces;
	double share;

	site_traces_init(&traces);
	for (uint64_t token = 1; token <= TOKENS; token++)
		site_traces_alloc(&traces,
				  &(struct cuf_event){ .stack = SITE,
						       .seq = token,
						       .bytes = token * STEP_MIB * MiB +
								rest_of(token) });
	share = site_trace_arithmetic(site_traces_of(&traces, SITE));
	site_traces_fini(&traces);
	return share;
}

static uint64_t none(uint64_t token) { return token * 0; }

/* what PyTorch does not split off, of every second block of a later half */
static uint64_t below_one_mib(uint64_t token)
{
	return token % 2 && token > TOKENS / 4 ? token * 37 % 16 * MiB / 16 : 0;
}

static uint64_t squares(uint64_t token) { return token * token * STEP_MIB * MiB; }

static void test_site_trace__equal_steps(void **state)
{
	(void)state;
	assert_true(arithmetic_of(none) > 0.99);
}

static void test_site_trace__steps_of_blocks_that_were_not_split(void **state)
{
	(void)state;
	assert_true(arithmetic_of(below_one_mib) > 0.9);
}

static void test_site_trace__steps_that_grow_are_not_equal(void **state)
{
	(void)state;
	assert_true(arithmetic_of(squares) < 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site_trace__equal_steps),
		cmocka_unit_test(test_site_trace__steps_of_blocks_that_were_not_split),
		cmocka_unit_test(test_site_trace__steps_that_grow_are_not_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
