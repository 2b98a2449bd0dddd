/* SPDX-License-Identifier: Apache-2.0 */
/* What removing one thing buys, from metrics and demand alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/explain/evidence/counterfactual.h"

#define MiB ((uint64_t)1 << 20)
#define GiB ((uint64_t)1 << 30)

static struct fact_process process = { .requests = { .count = 100, .per_s = 10 } };
static struct facts facts = { .processes = &process, .process_count = 1 };
static const struct build build = { .facts = &facts };

/* 16 GiB, of which others have 5: 100 MiB were missing. */
static struct evidence failed(enum demand_part grew, uint64_t grown_bytes)
{
	static const struct fact_incident incident;
	struct evidence evidence = { .quality = 1, .incident = &incident };

	for (enum metric m = 0; m < METRIC_MAX; m++)
		evidence.metrics[m] = CUF_UNKNOWN;
	for (enum signal s = 0; s < SIGNAL_MAX; s++)
		evidence.signals[s].value = NAN;
	evidence.metrics[METRIC_total] = 16 * GiB;
	evidence.metrics[METRIC_request] = 120 * MiB;
	evidence.metrics[METRIC_free] = 20 * MiB;
	evidence.metrics[METRIC_shortfall] = 100 * MiB;
	evidence.metrics[METRIC_others] = 5 * GiB;
	evidence.metrics[METRIC_packed] = 320 * MiB;
	evidence.signals[SIGNAL_packed].value = 320. / 120;
	evidence.signals[SIGNAL_slack].value = 3;
	evidence.demand = (struct demand){
		.before_bytes = 10 * GiB,
		.now_bytes = 10 * GiB + grown_bytes,
		.grown_bytes = grown_bytes,
		.seconds = 4,
		.most = grew,
	};
	evidence.demand.by[grew] = grown_bytes;
	return evidence;
}

static void test_without_what_grows_there_is_no_limit_and_all_else_delays(void **state)
{
	struct evidence evidence = failed(DEMAND_LEAK, 2 * GiB);
	const struct removal *tenant = &evidence.removals[REMOVED_TENANT];
	(void)state;

	evidence.metrics[METRIC_leaked] = 3 * GiB;
	evidence_counterfactual(&build, &evidence);
	assert_true(isinf(evidence.removals[REMOVED_LEAK].reach));
	assert_float_equal(removal_weight(&evidence, REMOVED_LEAK), 1, 1e-9);
	/* others less a context of a twentieth, less what was missing, at 2 GiB in 4 s */
	assert_true(tenant->fits);
	assert_float_equal(tenant->seconds, (5 - 0.8 - 100. / 1024) / 2 * 4, 0.01);
	assert_float_equal(tenant->requests, tenant->seconds * 10, 1e-6);
	assert_true(removal_weight(&evidence, REMOVED_TENANT) < 0.8);
	/* 200 MiB more would have been full at once: that is no fragmentation */
	assert_true(evidence.signals[SIGNAL_packed].value < 1);
}

static void test_where_nothing_grew_each_removal_is_enough(void **state)
{
	struct evidence evidence = failed(DEMAND_NONE, 0);
	(void)state;

	evidence_counterfactual(&build, &evidence);
	assert_true(isinf(evidence.removals[REMOVED_TENANT].reach));
	assert_true(isinf(evidence.removals[REMOVED_GAPS].reach));
	assert_true(evidence.signals[SIGNAL_packed].value > 1);
}

static void test_loading_ends_by_itself(void **state)
{
	struct evidence evidence = failed(DEMAND_LOAD, 10 * GiB);
	(void)state;

	evidence.demand.before_bytes = 0;
	evidence.demand.now_bytes = 10 * GiB;
	evidence.metrics[METRIC_others] = 6 * GiB;
	evidence_counterfactual(&build, &evidence);
	assert_float_equal(removal_weight(&evidence, REMOVED_TENANT), 1, 0.02);
	assert_true(removal_weight(&evidence, REMOVED_GAPS) < 0.35);
}

static void test_what_frees_too_little_does_not_fit(void **state)
{
	struct evidence evidence = failed(DEMAND_LEAK, 2 * GiB);
	(void)state;

	evidence.metrics[METRIC_packed] = 90 * MiB;
	evidence_counterfactual(&build, &evidence);
	assert_false(evidence.removals[REMOVED_GAPS].fits);
	assert_true(isnan(evidence.removals[REMOVED_GAPS].reach));
	assert_true(evidence.removals[REMOVED_LEAK].bytes == CUF_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_what_grows_there_is_no_limit_and_all_else_delays),
		cmocka_unit_test(test_where_nothing_grew_each_removal_is_enough),
		cmocka_unit_test(test_loading_ends_by_itself),
		cmocka_unit_test(test_what_frees_too_little_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
