/* SPDX-License-Identifier: Apache-2.0 */
/* Both ways of sorting pairs, against each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "interpose/platform/sort.h"

enum { PAIRS = 3000 };

static uint64_t random_state = 1;

static uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Keys within mask, each pair with its place as value. */
static void fill(struct cuf_pair *pairs, unsigned count, uint64_t mask)
{
	for (unsigned i = 0; i < count; i++)
		pairs[i] = (struct cuf_pair){ (random_word() & mask) + (1ull << 33), i };
}

static void check(unsigned count, uint64_t mask)
{
	struct cuf_pair *pairs = calloc(PAIRS, sizeof *pairs), *same = calloc(PAIRS, sizeof *same),
			*spare = calloc(PAIRS, sizeof *spare), *sorted;

	fill(pairs, count, mask);
	for (unsigned i = 0; i < count; i++)
		same[i] = pairs[i];
	cuf_sort_pairs(same, count);
	sorted = cuf_sort_pairs_using(pairs, spare, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(sorted[i].key, same[i].key);
		if (i && sorted[i].key == sorted[i - 1].key)
			assert_true(sorted[i].value > sorted[i - 1].value);
	}
	free(pairs);
	free(same);
	free(spare);
}

static void test_sort__both_ways_agree(void **state)
{
	static const uint64_t masks[] = {
		0, 1, 0xff, 0xff00, 0xfff000, 0xffffffffff, 0x7fffffffffffffff,
	};
	static const unsigned counts[] = { 0, 1, 2, 3, 255, 256, PAIRS };

	for (unsigned m = 0; m < sizeof masks / sizeof *masks; m++)
		for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++)
			check(counts[c], masks[m]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sort__both_ways_agree) };

	return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
