/* SPDX-License-Identifier: Apache-2.0 */
/* What a typed limit means, and which ones are refused. */
#include "analysis/gate/finding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

static struct arena *arena;

static struct gate_limit parse(const char *text)
{
	struct gate_limit limit;
	char error[600] = "";

	if (gate_limit_parse(text, arena, &limit, error, sizeof error))
		fail_msg("%s: %s", text, error);
	return limit;
}

static void absolute_limits(void **state)
{
	struct gate_limit limit = parse("  device.peak<=2 GiB ");

	assert_string_equal(limit.measure->name, "device.peak");
	assert_int_equal(limit.operator, GATE_AT_MOST);
	assert_false(limit.relative);
	assert_int_equal(limit.value, 2ull << 30);
	assert_string_equal(limit.text, "device.peak <= 2 GiB");
	limit = parse("incidents.recovered = 0");
	assert_int_equal(limit.operator, GATE_EQUAL);
	assert_int_equal(limit.value, 0);
	assert_int_equal(parse("device.peak <= 1.5 GiB").value, 3ull << 29);
	assert_int_equal(parse("device.peak <= 2 GB").value, 2000000000);
	assert_int_equal(parse("device.peak <= +3% + 1.5 MiB").value, 3 << 19);
	assert_int_equal(parse("device.hole >= 1GiB").operator, GATE_AT_LEAST);
	assert_int_equal(parse("host.end < 5MiB").operator, GATE_BELOW);
}

static void relative_limits(void **state)
{
	struct gate_limit limit = parse("device.peak <= +3%");

	assert_true(limit.relative);
	assert_true(limit.percent > 2.99 && limit.percent < 3.01);
	assert_int_equal(limit.value, GATE_FLOOR_BYTES);
	limit = parse("device.peak <= +0.5% + 16MiB");
	assert_true(limit.percent > 0.49 && limit.percent < 0.51);
	assert_int_equal(limit.value, 16 << 20);
	limit = parse("device.peak <= +64MiB");
	assert_true(limit.percent == 0);
	assert_int_equal(limit.value, 64 << 20);
	limit = parse("device.allocations <= +10%");
	assert_int_equal(limit.value, 0);
}

static void a_phase_follows_the_measure(void **state)
{
	struct gate_limit limit = parse("device.peak @ load weights <= 2GiB");

	assert_string_equal(limit.phase, "load weights");
	assert_string_equal(limit.text, "device.peak@load weights <= 2GiB");
}

static void what_is_no_limit_is_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = {
		"", "device.peak", "device.peak 2GiB", "device.peak <= ", "device.peak <= 2GiBs",
		"device.peak <= -3%", "devce.peak <= 1", "device.peak <= +%", "device.peak <= + ",
		"device.peak <= 3%", "device.peak >= +3%", "incidents.fatal <= many",
		"device.peak@ <= 1GiB", "device.peak <= +1e99%", "device.peak == 3",
		"device.peak <= 99999999999999999999999",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct gate_limit limit;
		char error[600] = "";
		if (!gate_limit_parse(bad[i], arena, &limit, error, sizeof error))
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(strlen(error) > 20);
	}
}

/* Sizes to name: every row has a name of its own and the texts that a sentence needs. */
static void every_measure_has_its_words(void **state)
{
	for (size_t i = 0; i < MEASURE_MAX; i++) {
		const struct gate_measure *measure = &gate_measures[i];
		assert_non_null(measure->name);
		assert_ptr_equal(gate_measure_find(measure->name, strlen(measure->name)), measure);
		assert_true(*measure->noun && *measure->about);
	}
	assert_null(gate_measure_find("device", 6));
}

static void the_worst_finding_decides_the_exit_status(void **state)
{
	static const char *const reasons[] = { "events were lost" };
	struct gate_finding findings[2] = { { .status = GATE_OK }, { .status = GATE_SUPPRESSED } };
	struct gate_result result = { .findings = findings, .finding_count = 2 };

	assert_int_equal(gate_exit_status(&result), 0);
	findings[1].status = GATE_INCONCLUSIVE;
	assert_int_equal(gate_exit_status(&result), 3);
	findings[0].status = GATE_EXCEEDED;
	assert_int_equal(gate_exit_status(&result), 1);
	findings[0].status = findings[1].status = GATE_OK;
	result.inconclusive = reasons;
	result.inconclusive_count = 1;
	assert_int_equal(gate_exit_status(&result), 3);
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
		cmocka_unit_test(absolute_limits),
		cmocka_unit_test(relative_limits),
		cmocka_unit_test(a_phase_follows_the_measure),
		cmocka_unit_test(what_is_no_limit_is_refused_with_a_sentence),
		cmocka_unit_test(every_measure_has_its_words),
		cmocka_unit_test(the_worst_finding_decides_the_exit_status),
	};
	return cmocka_run_group_tests(tests, open_arena, close_arena);
}
