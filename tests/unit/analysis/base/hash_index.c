/* SPDX-License-Identifier: Apache-2.0 */
/* The index of an array by key: any key, growth, and no number for a key that is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"

static void test_hash_index__finds_what_was_stored(void **state)
{
	struct hash_index index;

	hash_index_init(&index, 0);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t *number = hash_index_place(&index, (uint64_t)i << 12);
		assert_int_equal(*number, 0);
		*number = i + 1;
	}
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(hash_index_find(&index, (uint64_t)i << 12), i + 1);
	assert_int_equal(index.count, 100000);
	assert_true(index.room >= 2 * index.count);
	hash_index_fini(&index);
}

static void test_hash_index__takes_any_key(void **state)
{
	static const uint64_t keys[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 1ull << 63 };
	struct hash_index index;

	hash_index_init(&index, 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(hash_index_find(&index, keys[i]), 0);
		*hash_index_place(&index, keys[i]) = i + 10;
	}
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(*hash_index_place(&index, keys[i]), i + 10);
	assert_int_equal(hash_index_find(&index, 2), 0);
	hash_index_fini(&index);
}

static void test_numbers__the_unknown_counts_nothing(void **state)
{
	uint64_t numbers[] = { 3, 1, CUF_UNKNOWN, 2 };

	assert_int_equal(known_or_zero(CUF_UNKNOWN), 0);
	assert_int_equal(known_or_zero(7), 7);
	assert_int_equal(subtract_to_zero(3, 5), 0);
	assert_int_equal(subtract_to_zero(5, 3), 2);
	assert_int_equal(compare_uint64(&numbers[0], &numbers[1]), 1);
	assert_int_equal(compare_uint64(&numbers[1], &numbers[2]), -1);
	assert_int_equal(compare_uint64(&numbers[3], &numbers[3]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_index__finds_what_was_stored),
		cmocka_unit_test(test_hash_index__takes_any_key),
		cmocka_unit_test(test_numbers__the_unknown_counts_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
