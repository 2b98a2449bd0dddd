/* SPDX-License-Identifier: Apache-2.0 */
/* What one call site asked for: sizes that rise by equal steps; blocks that end in groups. */
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

/* Rounds of so many blocks: the older half is freed in rows of so many, then the rest. */
static struct site_trace rounds(unsigned blocks, unsigned row)
{
	struct site_traces traces;
	struct site_trace trace;
	uint64_t seq = 0;

	site_traces_init(&traces);
	for (unsigned round = 0; round < 12; round++) {
		for (unsigned i = 0; i < blocks; i++)
			site_traces_alloc(&traces, &(struct cuf_event){ .stack = SITE, .seq = ++seq,
									.bytes = MiB });
		for (unsigned i = 0; i < blocks; i++) {
			const struct cuf_event event = { .alloc_stack = SITE, .seq = ++seq,
							 .bytes = MiB };
			site_traces_free(&traces, &event);
			if (i < blocks / 2 && i % row == row - 1) {
				site_traces_alloc(&traces, &(struct cuf_event){ .stack = SITE,
										.seq = ++seq,
										.bytes = MiB });
				site_traces_free(&traces, &event);
			}
		}
	}
	trace = *site_traces_of(&traces, SITE);
	site_traces_fini(&traces);
	return trace;
}

static void test_site_trace__requests_that_end_with_several_blocks_have_pages(void **state)
{
	const struct site_trace pages = rounds(64, 8), requests = rounds(64, 1);
	const struct site_trace wave = rounds(64, 64);
	(void)state;

	assert_true(site_trace_is_paged(&pages));
	assert_false(site_trace_is_paged(&requests));
	/* all of them together: one batch */
	assert_false(site_trace_is_paged(&wave));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_site_trace__equal_steps),
		cmocka_unit_test(test_site_trace__steps_of_blocks_that_were_not_split),
		cmocka_unit_test(test_site_trace__steps_that_grow_are_not_equal),
		cmocka_unit_test(test_site_trace__requests_that_end_with_several_blocks_have_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
