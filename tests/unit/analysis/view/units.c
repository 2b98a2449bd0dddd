/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text: rounding at the borders of units, unknown, and sizes parsed again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/units.h"

static void test_bytes__three_digits_and_the_right_unit(void **state)
{
	assert_string_equal(units_bytes(0).s, "0 B");
	assert_string_equal(units_bytes(1023).s, "1023 B");
	assert_string_equal(units_bytes(1024).s, "1.00 KiB");
	assert_string_equal(units_bytes((1ull << 30) - 1).s, "1.00 GiB"); /* never 1024.00 MiB */
	assert_string_equal(units_bytes(2ull << 30).s, "2.00 GiB");
	assert_string_equal(units_bytes(1610612736).s, "1.50 GiB");
	assert_string_equal(units_bytes(1023ull << 20).s, "1023 MiB");
	assert_string_equal(units_bytes(512ull << 10).s, "512 KiB");
	assert_string_equal(units_bytes(34ull << 20).s, "34.0 MiB");
	assert_string_equal(units_bytes(10475274).s, "9.99 MiB"); /* rounded within its digits */
	assert_string_equal(units_bytes(10484711).s, "10.0 MiB"); /* 9.999: never 10.00 */
	assert_string_equal(units_bytes(104805171).s, "99.9 MiB"); /* 99.95 */
	assert_string_equal(units_bytes(104836629).s, "100 MiB"); /* 99.98 */
	assert_string_equal(units_bytes(UINT64_MAX - 1).s, "16.0 EiB");
}

static void test_bytes__a_sample_has_two_digits(void **state)
{
	assert_string_equal(units_bytes_rough(0).s, "~0 B");
	assert_string_equal(units_bytes_rough(7ull << 30).s, "~7.0 GiB");
	assert_string_equal(units_bytes_rough(1572960).s, "~1.5 MiB");
	assert_string_equal(units_bytes_rough(73953968).s, "~71 MiB");
	assert_string_equal(units_bytes_rough(525926).s, "~510 KiB");
	assert_string_equal(units_bytes_rough(1023ull << 20).s, "~1000 MiB");
	assert_string_equal(units_bytes_rough(CUF_UNKNOWN).s, "?");
}

static void test_bytes__unknown_is_never_zero(void **state)
{
	assert_string_equal(units_bytes(CUF_UNKNOWN).s, "?");
	assert_string_equal(units_count(CUF_UNKNOWN).s, "?");
	assert_string_equal(units_percent(1, CUF_UNKNOWN).s, "?");
	assert_string_equal(units_percent(1, 0).s, "?");
	assert_string_equal(units_duration(CUF_UNKNOWN).s, "?");
	assert_string_equal(units_wall(CUF_UNKNOWN).s, "?");
	assert_string_equal(units_bytes_signed(NAN).s, "?");
}

static void test_count__thousands(void **state)
{
	assert_string_equal(units_count(0).s, "0");
	assert_string_equal(units_count(999).s, "999");
	assert_string_equal(units_count(1000).s, "1,000");
	assert_string_equal(units_count(1204551).s, "1,204,551");
}

static void test_duration__never_rounds_up_into_the_next_unit(void **state)
{
	assert_string_equal(units_duration(999999).s, "999 us");
	assert_string_equal(units_duration(999999999).s, "999 ms");
	assert_string_equal(units_duration(59990000000).s, "59.9 s");
	assert_string_equal(units_duration(2467000000000).s, "41m07s");
	assert_string_equal(units_duration(11100000000000).s, "3h05m");
	assert_string_equal(units_duration(187200000000000).s, "2d04h");
}

static void test_wall__milliseconds(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	assert_string_equal(units_wall(1700000000118000000).s, "22:13:20.118");
	assert_string_equal(units_date(1700000000118000000).s, "2023-11-14 22:13:20");
}

static void test_signed__both_ways(void **state)
{
	assert_string_equal(units_bytes_signed(1572864).s, "+1.50 MiB");
	assert_string_equal(units_bytes_signed(-1024).s, "-1.00 KiB");
	assert_string_equal(units_bytes_signed(0).s, "+0 B");
}

static void test_parse__sizes(void **state)
{
	uint64_t bytes;
	assert_true(units_parse_bytes("512KiB", &bytes) && bytes == 524288);
	assert_true(units_parse_bytes("2G", &bytes) && bytes == 2ull << 30);
	assert_true(units_parse_bytes("0", &bytes) && bytes == 0);
	assert_false(units_parse_bytes("", &bytes));
	assert_false(units_parse_bytes("-1", &bytes));
	assert_true(units_parse_bytes("1.5GiB", &bytes) && bytes == 3ull << 29);
	assert_true(units_parse_bytes("1.1GiB", &bytes) && bytes == 1181116006);
	assert_true(units_parse_bytes("1.0000009 T", &bytes) && bytes == 1ull << 40);
	assert_true(units_parse_bytes("1GB", &bytes) && bytes == 1000000000);
	assert_true(units_parse_bytes("2.5 gb", &bytes) && bytes == 2500000000);
	assert_true(units_parse_bytes("3 Mi", &bytes) && bytes == 3 << 20);
	assert_true(units_parse_bytes("7 kB", &bytes) && bytes == 7000);
	assert_true(units_parse_bytes("65536 B", &bytes) && bytes == 65536);
	assert_true(units_parse_bytes("16777215.999999TiB", &bytes) &&
		    bytes == UINT64_MAX - 1099511);
	assert_false(units_parse_bytes("1.5", &bytes));
	assert_false(units_parse_bytes("1.5 B", &bytes));
	assert_false(units_parse_bytes("1.GiB", &bytes));
	assert_false(units_parse_bytes(".5GiB", &bytes));
	assert_false(units_parse_bytes("1,5GiB", &bytes));
	assert_false(units_parse_bytes("1 2 GiB", &bytes));
	assert_false(units_parse_bytes("1KiBs", &bytes));
	assert_false(units_parse_bytes("1Kb/s", &bytes));
	assert_false(units_parse_bytes("1XB", &bytes));
	assert_false(units_parse_bytes("17179869184GiB", &bytes)); /* 2^64 */
	assert_false(units_parse_bytes("99999999999999999999", &bytes));
	assert_false(units_parse_count("12x", &bytes));
	assert_false(units_parse_count(" 1", &bytes));
}

static void test_parse__nothing_is_read_behind_the_end(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	char *text = pages + page - 2;
	uint64_t bytes;

	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	memcpy(text, "8", 2);
	assert_true(units_parse_bytes(text, &bytes) && bytes == 8);
	munmap(pages, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes__three_digits_and_the_right_unit),
		cmocka_unit_test(test_bytes__a_sample_has_two_digits),
		cmocka_unit_test(test_bytes__unknown_is_never_zero),
		cmocka_unit_test(test_count__thousands),
		cmocka_unit_test(test_duration__never_rounds_up_into_the_next_unit),
		cmocka_unit_test(test_wall__milliseconds),
		cmocka_unit_test(test_signed__both_ways),
		cmocka_unit_test(test_parse__sizes),
		cmocka_unit_test(test_parse__nothing_is_read_behind_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
