/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nesting ranges, on which the symbol table and the DWARF index rely, checked against a plain scan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analysis/symbols/symbol_table.h"

#define NONE UINT64_MAX

static uint64_t value_at(const struct address_ranges *ranges, uint64_t address)
{
	const struct address_range *range = address_ranges_find(ranges, address);

	return range ? range->value : NONE;
}

static void test_address_ranges__ends_are_open(void **state)
{
	struct address_ranges ranges = { 0 };

	assert_int_equal(value_at(&ranges, 0), NONE);
	address_ranges_add(&ranges, 30, 40, 3);
	address_ranges_add(&ranges, 10, 20, 1);
	address_ranges_add(&ranges, 50, 50, 5);
	address_ranges_sort(&ranges);
	assert_int_equal(value_at(&ranges, 9), NONE);
	assert_int_equal(value_at(&ranges, 10), 1);
	assert_int_equal(value_at(&ranges, 19), 1);
	assert_int_equal(value_at(&ranges, 20), NONE);
	assert_int_equal(value_at(&ranges, 39), 3);
	assert_int_equal(value_at(&ranges, 40), NONE);
	assert_int_equal(value_at(&ranges, 50), NONE);
	address_ranges_fini(&ranges);
}

static void test_address_ranges__nested(void **state)
{
	struct address_ranges ranges = { 0 };

	address_ranges_add(&ranges, 0, 100, 1);
	address_ranges_add(&ranges, 10, 20, 2);
	address_ranges_add(&ranges, 10, 15, 3);
	address_ranges_add(&ranges, 30, 40, 4);
	address_ranges_add(&ranges, 99, UINT64_MAX, 5);
	address_ranges_sort(&ranges);
	assert_int_equal(value_at(&ranges, 5), 1);
	assert_int_equal(value_at(&ranges, 12), 3);
	assert_int_equal(value_at(&ranges, 17), 2);
	assert_int_equal(value_at(&ranges, 25), 1);
	assert_int_equal(value_at(&ranges, 98), 1);
	assert_int_equal(value_at(&ranges, 99), 5);
	assert_int_equal(value_at(&ranges, UINT64_MAX), NONE);
	address_ranges_fini(&ranges);
}

/* The range that starts last among those that hold the address, then the one that ends first. */
static uint64_t slow_value_at(const struct address_ranges *ranges, uint64_t address)
{
	const struct address_range *best = NULL;

	for (size_t i = 0; i < ranges->count; i++) {
		const struct address_range *range = &ranges->list[i];
		if (address < range->start || address >= range->end)
			continue;
		if (!best || range->start > best->start ||
		    (range->start == best->start && range->end < best->end))
			best = range;
	}
	return best ? best->value : NONE;
}

static void test_address_ranges__equals_a_scan(void **state)
{
	srand(7);
	for (unsigned round = 0; round < 200; round++) {
		struct address_ranges ranges = { 0 };
		for (unsigned i = 0; i < 40; i++) {
			uint64_t start = (uint64_t)rand() % 200, bytes = (uint64_t)rand() % 30;
			address_ranges_add(&ranges, start, start + bytes, start * 1000 + bytes);
		}
		address_ranges_sort(&ranges);
		for (uint64_t address = 0; address < 240; address++)
			assert_int_equal(value_at(&ranges, address),
			                 slow_value_at(&ranges, address));
		address_ranges_fini(&ranges);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_ranges__ends_are_open),
		cmocka_unit_test(test_address_ranges__nested),
		cmocka_unit_test(test_address_ranges__equals_a_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
