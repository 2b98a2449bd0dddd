/* SPDX-License-Identifier: Apache-2.0 */
/* Last components, and words that a shell reads back as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "analysis/base/paths.h"

static void test_base_name(void **state)
{
	assert_string_equal(path_base_name("/a/b.so"), "b.so");
	assert_string_equal(path_base_name("b.so"), "b.so");
	assert_string_equal(path_base_name("/a/"), "");
	assert_string_equal(path_base_name(""), "");
}

static void assert_quoted(const char *path, const char *expected)
{
	char out[64];

	path_quote_shell(path, out, sizeof out);
	assert_string_equal(out, expected);
}

static void test_quote__only_where_needed(void **state)
{
	assert_quoted("rec/a-b_1.cuf", "rec/a-b_1.cuf");
	assert_quoted("a b", "'a b'");
	assert_quoted("it's", "'it'\\''s'");
	assert_quoted("$HOME;*", "'$HOME;*'");
	assert_quoted("~", "'~'");
	assert_quoted("", "''");
}

/* A text that does not fit is cut, and still one closed word. */
static void test_quote__cut_to_fit(void **state)
{
	char out[8];

	path_quote_shell("a b c d e f", out, sizeof out);
	assert_int_equal(out[0], '\'');
	assert_int_equal(out[strlen(out) - 1], '\'');
	path_quote_shell("''''", out, sizeof out);
	assert_string_equal(out, "''\\'''");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base_name),
		cmocka_unit_test(test_quote__only_where_needed),
		cmocka_unit_test(test_quote__cut_to_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
