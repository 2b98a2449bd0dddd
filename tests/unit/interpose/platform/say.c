/* SPDX-License-Identifier: Apache-2.0 */
/* Texts without allocation: sizes are rounded as the report rounds them, and nothing overflows. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/platform/say.h"

static void test_say__sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.00 KiB" },
		{ 1536, "1.50 KiB" },
		{ 4280287232, "3.99 GiB" },
		{ 4271898624, "3.98 GiB" },
		{ 1152, "1.12 KiB" },
		{ 16ull << 30, "16.0 GiB" },
		{ (1ull << 30) - 1, "1.00 GiB" },
		{ 1023ull << 20, "1023 MiB" },
		{ 512ull << 10, "512 KiB" },
		{ 34ull << 20, "34.0 MiB" },
		{ 10475274, "9.99 MiB" },
		{ 10484711, "10.0 MiB" },
		{ 104805171, "99.9 MiB" },
		{ 104836629, "100 MiB" },
		{ UINT64_MAX - 1, "16.0 EiB" },
		{ CUF_UNKNOWN, "unknown" },
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		CUF_TEXT(text, 64);
		cuf_text_size(&text, rows[i].bytes);
		assert_string_equal(text.at, rows[i].text);
	}
}

static void test_say__a_text_that_is_too_long_is_cut(void **state)
{
	CUF_TEXT(text, 8);
	cuf_text_add(&text, "cuflight and more");
	cuf_text_number(&text, 12345);
	assert_string_equal(text.at, "cufligh");
	assert_int_equal(text.used, 7);
}

/* A path in a line must not begin another line, or move a terminal's cursor. */
static void test_say__what_a_terminal_acts_on_is_replaced(void **state)
{
	static const char path[] = "a\n::error::\x1b[31m\x7f\t\xc2\x9b" "31m\xc3\xa9.cuf";
	CUF_TEXT(text, 64);

	cuf_text_printable(&text, path, sizeof path - 1);
	assert_string_equal(text.at, "a?::error::?[31m??\xc2?31m\xc3\xa9.cuf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_say__sizes),
		cmocka_unit_test(test_say__a_text_that_is_too_long_is_cut),
		cmocka_unit_test(test_say__what_a_terminal_acts_on_is_replaced),
	};
	return cmocka_run_group_tests_name("say", tests, NULL, NULL);
}
