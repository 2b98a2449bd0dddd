/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what the environment sets, what is wrong with it, and how a file name is built. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/platform/options.h"

static struct cuf_options read_options(const char *text)
{
	char line[512];
	char *environment[] = { (char *)"PATH=/bin", line, NULL };
	struct cuf_options saved = cuf_options, result;
	snprintf(line, sizeof line, "CUFLIGHT_OPTIONS=%s", text);
	cuf_options_read(environment, 0);
	result = cuf_options;
	cuf_options = saved;
	return result;
}

static void test_options__defaults(void **state)
{
	struct cuf_options o = read_options("");
	assert_int_equal(o.host, CUF_HOST_SAMPLED);
	assert_int_equal(o.sample, 512 << 10);
	assert_int_equal(o.size, 64 << 20);
	assert_int_equal(o.stack_depth, 64);
	assert_int_equal(o.disabled, 0);
}

static void test_options__values_and_units(void **state)
{
	struct cuf_options o = read_options(
		"host=full:sample=8K:size=1GiB:stack_depth=256:verbose:termination_log=/dev/termination-log");
	assert_int_equal(o.host, CUF_HOST_FULL);
	assert_int_equal(o.sample, 8 << 10);
	assert_int_equal(o.size, 1 << 30);
	assert_int_equal(o.stack_depth, 256);
	assert_int_equal(o.verbose, 1);
	assert_string_equal(o.termination_log, "/dev/termination-log");
}

/* As the command reads them: both use one function. */
static void test_options__sizes_have_decimals_and_units_of_1000(void **state)
{
	struct cuf_options o = read_options("size=1.5 GiB:sample=512kB");
	assert_int_equal(o.size, 3ull << 29);
	assert_int_equal(o.sample, 512000);
}

static void test_options__hyphens_are_underscores(void **state)
{
	struct cuf_options o = read_options("stack-depth=9:termination-log=/tmp/log");
	assert_int_equal(o.stack_depth, 9);
	assert_string_equal(o.termination_log, "/tmp/log");
	o = read_options("stack+depth=9:st-ack_depth=9");
	assert_int_equal(o.stack_depth, 64);
}

static void test_options__wrong_values_leave_the_default(void **state)
{
	static const char *const wrong[] = { "size=1",
		                             "size=99999999999999999999",
		                             "size=12XiB",
		                             "stack_depth=0",
		                             "stack_depth=257",
		                             "host=some",
		                             "size=",
		                             "nonsense=1",
		                             "=",
		                             "verbose=2",
		                             "size=1GiBx",
		                             "sample=-4096" };
	struct cuf_options expected = read_options("");
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct cuf_options o = read_options(wrong[i]);
		assert_memory_equal(&o, &expected, sizeof o);
	}
}

static void test_options__secure_and_disabled_read_nothing(void **state)
{
	char *environment[] = { (char *)"CUFLIGHT_OPTIONS=host=full", (char *)"CUFLIGHT_DISABLE=1",
		                NULL };
	struct cuf_options saved = cuf_options;
	cuf_options_read(environment, 0);
	assert_int_equal(cuf_options.disabled, 1);
	assert_int_equal(cuf_options.host, CUF_HOST_SAMPLED);
	cuf_options = saved;
	cuf_options_read(environment + 2, 1);
	assert_int_equal(cuf_options.disabled, 1);
	cuf_options = saved;
	cuf_options_read(NULL, 0);
	assert_int_equal(cuf_options.disabled, 0);
}

static void test_options__file_name_patterns(void **state)
{
	char *environment[] = { (char *)"RANK=3", NULL };
	struct cuf_name_parts parts = {
		.pid = 42, .epoch_s = 1700000000, .n = 7, .host = "node1", .executable = "python3",
		.environment = environment,
	};
	char out[64];
	assert_int_equal(
		cuf_options_expand("%e.%h.%p-%n-%t-%q{RANK}-%%-%x", &parts, out, sizeof out), 0);
	assert_string_equal(out, "python3.node1.42-7-1700000000-3-%-%x");
	assert_int_equal(cuf_options_expand("a%q{ABSENT}b%", &parts, out, sizeof out), 0);
	assert_string_equal(out, "ab%");
	assert_int_equal(
		cuf_options_expand("%h%h%h%h%h%h%h%h%h%h%h%h%h%h", &parts, out, sizeof out), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options__defaults),
		cmocka_unit_test(test_options__values_and_units),
		cmocka_unit_test(test_options__sizes_have_decimals_and_units_of_1000),
		cmocka_unit_test(test_options__hyphens_are_underscores),
		cmocka_unit_test(test_options__wrong_values_leave_the_default),
		cmocka_unit_test(test_options__secure_and_disabled_read_nothing),
		cmocka_unit_test(test_options__file_name_patterns),
	};
	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
