/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds against limits, spreads of baselines, and pairs of call sites. */
#include "analysis/gate/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/base/xalloc.h"
#include "analysis/gate/compared.h"
#include "analysis/view/commands/baseline_file.h"
#include "interpose/abi/format.h"

#define MIB (1ull << 20)
static struct arena *arena;

static enum gate_status judged(const char *text, uint64_t low, uint64_t high, bool proofs_only)
{
	struct gate_value value = { low, low, high, "" };
	struct gate_spread none = { 0 };
	struct gate_limit limit;
	char error[600];

	assert_int_equal(gate_limit_parse(text, arena, &limit, error, sizeof error), 0);
	limit.proofs_only = proofs_only;
	return judge(&limit, &value, judge_allowed(&limit, &none));
}

static void bounds_decide_and_between_them_nobody_knows(void **state)
{
	assert_int_equal(judged("device.peak <= 5", 5, 5, false), GATE_OK);
	assert_int_equal(judged("device.peak <= 5", 6, 6, false), GATE_EXCEEDED);
	assert_int_equal(judged("device.peak <= 5", 4, 6, false), GATE_INCONCLUSIVE);
	assert_int_equal(judged("device.peak <= 5", 4, CUF_UNKNOWN, false), GATE_INCONCLUSIVE);
	assert_int_equal(judged("device.peak <= 5", 6, CUF_UNKNOWN, false), GATE_EXCEEDED);
	assert_int_equal(judged("device.peak < 5", 5, 5, false), GATE_EXCEEDED);
	assert_int_equal(judged("device.peak < 5", 4, 4, false), GATE_OK);
	assert_int_equal(judged("device.hole >= 5", 5, 5, false), GATE_OK);
	assert_int_equal(judged("device.hole >= 5", 4, 4, false), GATE_EXCEEDED);
	assert_int_equal(judged("device.hole >= 5", 4, CUF_UNKNOWN, false), GATE_INCONCLUSIVE);
	assert_int_equal(judged("device.leak = 0", 0, 0, false), GATE_OK);
	assert_int_equal(judged("device.leak = 0", 0, 9, false), GATE_INCONCLUSIVE);
	assert_int_equal(judged("device.leak = 0", 1, 9, false), GATE_EXCEEDED);
	assert_int_equal(judged("device.leak = 7", 3, 3, false), GATE_EXCEEDED);
}

static void defaults_are_tripped_by_proofs_only(void **state)
{
	assert_int_equal(judged("host.leak = 0", 0, CUF_UNKNOWN, true), GATE_OK);
	assert_int_equal(judged("host.leak = 0", 0, 9, true), GATE_OK);
	assert_int_equal(judged("host.leak = 0", 1, 9, true), GATE_EXCEEDED);
}

static uint64_t allowed(const char *text, struct gate_spread spread)
{
	struct gate_limit limit;
	char error[600];

	assert_int_equal(gate_limit_parse(text, arena, &limit, error, sizeof error), 0);
	return judge_allowed(&limit, &spread);
}

static void a_relative_limit_allows_the_most_of_its_three_rules(void **state)
{
	struct gate_spread steady = { 100 * MIB, 100 * MIB, 100 * MIB, 0, 5 };
	struct gate_spread wide = { 100 * MIB, 90 * MIB, 120 * MIB, MIB, 5 };
	struct gate_spread rough = { 100 * MIB, 99 * MIB, 101 * MIB, 10 * MIB, 5 };
	struct gate_spread none = { 0 };

	assert_int_equal(allowed("device.peak <= +3%", steady), 103 * MIB);
	assert_int_equal(allowed("device.peak <= +0.1%", steady), 101 * MIB);
	assert_int_equal(allowed("device.peak <= +3% +16MiB", steady), 116 * MIB);
	assert_int_equal(allowed("device.peak <= +3%", wide), 120 * MIB);
	/* 3 deviations of 1.4826 MAD: 44.478 MiB */
	assert_true(allowed("device.peak <= +3%", rough) / MIB == 144);
	assert_true(allowed("device.peak <= +3%", none) == CUF_UNKNOWN);
}

static void spreads_are_median_extremes_and_deviation(void **state)
{
	uint64_t odd[] = { 9, 1, 5, 7, 100 }, even[] = { 4, 2, 8, 6 }, one[] = { 3 };
	struct gate_spread spread = spread_of(odd, 5);

	assert_int_equal(spread.median, 7);
	assert_int_equal(spread.least, 1);
	assert_int_equal(spread.most, 100);
	assert_int_equal(spread.mad, 2); /* of 2, 6, 2, 0, 93 */
	assert_int_equal(spread_of(even, 4).median, 5);
	spread = spread_of(one, 1);
	assert_int_equal(spread.median + spread.least + spread.most + spread.mad, 9);
	assert_int_equal(spread_of(one, 0).runs, 0);
}

static void sites_match_by_identity_then_by_likeness(void **state)
{
	const struct match_side now[] = {
		{ "a!f < a!main", GROUP_DEVICE, 10 },
		{ "a!f < a!g < a!main", GROUP_DEVICE, 50 },
		{ "a!f < a!main", GROUP_PINNED, 10 },
		{ "a!new < a!main", GROUP_DEVICE, 10 },
	};
	const struct match_side before[] = {
		{ "a!f < a!main", GROUP_DEVICE, 12 },
		{ "a!f < a!g < a!h < a!main", GROUP_DEVICE, 51 },
		{ "a!gone < a!main", GROUP_DEVICE, 5 },
	};
	size_t *found = match_sites(now, 4, before, 3);

	assert_int_equal(found[0], 0);
	assert_int_equal(found[1], 1);
	assert_true(found[2] == MATCH_NONE);
	assert_true(found[3] == MATCH_NONE);
	free(found);
	free(match_sites(NULL, 0, before, 3));
	free(match_sites(now, 4, NULL, 0));
}

/* Three runs of one site, one of which does not have another site. */
static void a_baseline_is_read_as_it_was_written(void **state)
{
	struct gate_baseline baseline, again;
	char error[600], path[] = "/tmp/baseline.XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	baseline_begin(&baseline);
	baseline.runs = 3;
	for (uint64_t i = 0; i < 3; i++) {
		baseline_add_site(&baseline, "a!f \"quoted\\\xff < a!main", GROUP_DEVICE,
				  (i + 1) * MIB, MIB);
		baseline_add_site(&baseline, "a!tiny", GROUP_DEVICE, 100, 0);
		if (i)
			baseline_add_site(&baseline, "a!most < a!main", GROUP_HOST, MIB, 0);
		else
			baseline_add_site(&baseline, "a!once < a!main", GROUP_HOST, MIB, 0);
	}
	baseline.environment.gpu = baseline.environment.driver = baseline.environment.frameworks =
		baseline.environment.host_mode = baseline.environment.recorder = "";
	baseline.environment.gpu_bytes = CUF_UNKNOWN;
	baseline_finish(&baseline);
	assert_true(baseline_write(&baseline, file));
	fclose(file);
	assert_int_equal(baseline_read(&again, path, error, sizeof error), 0);
	unlink(path);
	assert_int_equal(again.runs, 3);
	assert_int_equal(again.site_count, 2);
	assert_int_equal(again.sites[0].peak.median, 2 * MIB);
	assert_int_equal(again.sites[0].peak.most, 3 * MIB);
	assert_int_equal(again.sites[0].end.mad, 0);
	assert_string_equal(again.sites[1].identity, "a!most < a!main");
	assert_int_equal(again.sites[1].peak.least, 0);
	assert_true(again.environment.gpu_bytes == CUF_UNKNOWN);
	baseline_free(&baseline);
	baseline_free(&again);
}

static int open_arena(void **state)
{
	arena = arena_new();
	return 0;
}

static int close_arena(void **state)
{
	arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_decide_and_between_them_nobody_knows),
		cmocka_unit_test(defaults_are_tripped_by_proofs_only),
		cmocka_unit_test(a_relative_limit_allows_the_most_of_its_three_rules),
		cmocka_unit_test(spreads_are_median_extremes_and_deviation),
		cmocka_unit_test(sites_match_by_identity_then_by_likeness),
		cmocka_unit_test(a_baseline_is_read_as_it_was_written),
	};
	return cmocka_run_group_tests(tests, open_arena, close_arena);
}
