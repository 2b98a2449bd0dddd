/* SPDX-License-Identifier: Apache-2.0 */
/* The radix sort orders as a stable sort by comparison does, whatever the keys are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/sort.h"

struct item { uint32_t before; uint64_t key, second; char behind[3]; };

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252ull;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Keys of few values, of all values, of one value, ascending, of one byte that differs,
 * and ascending but for a few. */
static uint64_t key_of(unsigned sort, size_t i)
{
	switch (sort) {
	case 0: return random_number() % 7;
	case 1: return random_number();
	case 2: return 5;
	case 3: return i;
	case 4: return UINT64_MAX - i;
	case 6: return i % 40 ? i / 2 : random_number() % (i + 9); /* a few out of order */
	case 7: return i % 50 ? i / 3 : UINT64_MAX - i; /* a few too large */
	default: return (random_number() & 0xff) << 40;
	}
}

static void test_sort__is_stable_for_all_keys_and_counts(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 63, 64, 65, 1000, 70000 };
	(void)state;
	for (unsigned sort = 0; sort < 8; sort++)
		for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
			size_t count = counts[c];
			struct item *items = calloc(count + 1, sizeof *items);
			uint64_t sum = 0, sorted_sum = 0;
			for (size_t i = 0; i < count; i++) {
				items[i] = (struct item){ (uint32_t)i, key_of(sort, i), i, "ab" };
				sum += items[i].key;
			}
			sort_by_number(items, count, sizeof *items, offsetof(struct item, key));
			for (size_t i = 0; i < count; i++) {
				sorted_sum += items[i].key;
				assert_int_equal(items[i].before, items[i].second);
				assert_string_equal(items[i].behind, "ab");
				if (!i)
					continue;
				assert_true(items[i - 1].key <= items[i].key);
				if (items[i - 1].key == items[i].key)
					assert_true(items[i - 1].before < items[i].before);
			}
			assert_int_equal(sum, sorted_sum);
			free(items);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort__is_stable_for_all_keys_and_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
