/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments belong together, and numbers that no allocator reports. */
#include "analysis/what_if/homes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MiB (1ull << 20)
#define BASE 0x700000000000ull

enum { LARGE = 20, APART = 100 }; /* MiB: of a segment; between two */

static uint64_t segment(unsigned i) { return BASE + (uint64_t)i * APART * MiB; }

static uint32_t take(struct homes *homes, uint64_t addr, uint64_t bytes)
{
	return homes_alloc(homes, addr, bytes, false, false);
}

static void test_segments__are_one_group_until_something_was_left_free(void **state)
{
	struct homes *homes = homes_new();
	uint32_t first = homes_open(homes, segment(0), LARGE * MiB, false);
	uint32_t second = homes_open(homes, segment(1), LARGE * MiB, false);

	(void)state;
	assert_int_equal(take(homes, segment(0), LARGE * MiB), first);
	assert_int_equal(take(homes, segment(1), 2 * MiB), second);
	assert_true(homes_is_segment(homes, first) && homes_is_segment(homes, second));
	assert_int_equal(homes_settle(homes), 1);
	homes_free(homes);
}

/* A free part of 4 MiB fits better than one of 18: who takes the latter is of another stream. */
static void test_segments__a_better_part_left_free_means_another_stream(void **state)
{
	struct homes *homes = homes_new();
	uint32_t first = homes_open(homes, segment(0), LARGE * MiB, false);
	uint32_t second = homes_open(homes, segment(1), LARGE * MiB, false);

	(void)state;
	take(homes, segment(0), 16 * MiB); /* 4 MiB are left */
	take(homes, segment(1), 2 * MiB);  /* a new segment for it: they are of different streams */
	assert_int_equal(homes_settle(homes), 2);
	assert_int_not_equal(homes_group(homes, first), homes_group(homes, second));
	homes_free(homes);
}

/* A freed block joins the free parts on both sides. */
static void test_free_parts__are_joined(void **state)
{
	struct homes *homes = homes_new();
	uint32_t home = homes_open(homes, segment(0), LARGE * MiB, false);
	uint32_t other;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		take(homes, segment(0) + i * 5 * MiB, 5 * MiB);
	homes_give(homes, home, segment(0), 5 * MiB);
	homes_give(homes, home, segment(0) + 10 * MiB, 5 * MiB);
	homes_give(homes, home, segment(0) + 5 * MiB, 5 * MiB);
	/* 15 MiB are free in one part: a request for 14 that goes elsewhere is of another stream */
	other = homes_open(homes, segment(1), LARGE * MiB, false);
	take(homes, segment(1), 14 * MiB);
	assert_int_equal(homes_settle(homes), 2);
	assert_int_not_equal(homes_group(homes, home), homes_group(homes, other));
	homes_free(homes);
}

static void test_blocks__outside_of_any_range_have_no_home(void **state)
{
	struct homes *homes = homes_new();
	uint32_t home = homes_open(homes, segment(0), LARGE * MiB, false);

	(void)state;
	assert_int_equal(take(homes, segment(0) + LARGE * MiB, 1), HOME_NONE);
	assert_int_equal(take(homes, segment(0) - 1, 1), HOME_NONE);
	homes_close(homes, segment(0), false);
	assert_int_equal(take(homes, segment(0), 1), HOME_NONE);
	homes_give(homes, home, segment(0), 1);
	assert_int_equal(homes_open(homes, UINT64_MAX - 10, 100, false), HOME_NONE);
	assert_int_equal(homes_open(homes, segment(0), 0, false), HOME_NONE);
	homes_free(homes);
}

static uint64_t random_number(void)
{
	static uint64_t random = 88172645463325252ull;

	random ^= random << 13;
	random ^= random >> 7;
	return random ^= random << 17;
}

/* Any sequence of any numbers: with a sanitizer this shows what was freed and is used. */
static void test_damaged__any_numbers(void **state)
{
	static const uint64_t sizes[] = { 0, 1, MiB, 2 * MiB, 5 * MiB, LARGE * MiB, 3 * APART * MiB,
					  UINT64_MAX, UINT64_MAX - BASE, UINT64_MAX - BASE + MiB };
	struct homes *homes = homes_new();
	uint32_t home = HOME_NONE; /* of the block that began last */

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t choice = random_number();
		uint64_t addr = segment(choice % 3) + choice / 3 % 25 * MiB;
		uint64_t bytes = sizes[choice / 100 % (sizeof sizes / sizeof *sizes)];

		switch (choice / 1000000 % 8) {
		case 0: homes_open(homes, addr, bytes, choice >> 60 == 0); break;
		case 1: homes_close(homes, addr, choice >> 60 == 0); break;
		case 2: case 3: case 4: homes_give(homes, home, addr, bytes); break;
		default: home = homes_alloc(homes, addr, bytes, choice >> 63, choice >> 62 & 1);
		}
	}
	assert_true(homes_settle(homes) >= 1);
	homes_free(homes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments__are_one_group_until_something_was_left_free),
		cmocka_unit_test(test_segments__a_better_part_left_free_means_another_stream),
		cmocka_unit_test(test_free_parts__are_joined),
		cmocka_unit_test(test_blocks__outside_of_any_range_have_no_home),
		cmocka_unit_test(test_damaged__any_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
