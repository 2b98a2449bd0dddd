/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's allocator as a model: which of equal blocks are taken or released. Everything else is
 * compared with the real one (tests/frameworks/pytorch_what_if.tap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analysis/what_if/pytorch.h"
#include "analysis/what_if/pytorch_pool.h"

#define MIB (1ull << 20)
enum { FIRST, SECOND, THIRD, BLOCKS = 8 };

static void ask(void *pytorch, uint32_t block)
{
	assert_true(pytorch_model.alloc(
		pytorch, &(struct model_request){ .bytes = MIB, .block = block }));
}

static const struct caching_block *lowest(void *pytorch)
{
	const struct caching_block *block = pytorch_caching(pytorch)->blocks, *found = block;

	for (; block; block = block->listed_after)
		if (block->addr < found->addr)
			found = block;
	return found;
}

/* Two segments with one block of 1 MiB each and a hole of that size; the younger has the lower address,
 * which a released one had. Whether a request then goes to the younger one. */
static bool takes_lowest(const char *version)
{
	struct driver_pages *driver = driver_pages_new(64 * MIB, 2 * MIB);
	struct model_ground ground = {
		.driver = driver, .total_bytes = 64 * MIB, .limit_bytes = UINT64_MAX,
		.block_count = BLOCKS, .version = version
	};
	struct model_values values = { 0 };
	const char *why;
	void *pytorch = pytorch_model.open(&values, &ground, &why);
	bool taken;

	for (uint32_t block = 0; block < 4; block++)
		ask(pytorch, block);
	pytorch_model.free(pytorch, FIRST);
	pytorch_model.free(pytorch, SECOND);
	pytorch_model.empty_cache(pytorch);
	ask(pytorch, FIRST); /* where the first segment was */
	pytorch_model.free(pytorch, THIRD);
	assert_int_equal(pytorch_model.look(pytorch).reserved_bytes, 4 * MIB);
	assert_int_equal(pytorch_model.look(pytorch).allocated_bytes, 2 * MIB);
	assert_true(lowest(pytorch)->allocated);
	ask(pytorch, THIRD);
	assert_int_equal(pytorch_model.look(pytorch).reserved_bytes, 4 * MIB);
	taken = lowest(pytorch)->after->allocated;
	pytorch_model.close(pytorch);
	driver_pages_free(driver);
	return taken;
}

static void of_equals_old_versions_take_the_lowest(void **state)
{
	assert_true(takes_lowest("2.8.0"));
	assert_true(takes_lowest("2.12.1"));
	assert_true(takes_lowest("1.13.1"));
}

static void of_equals_new_versions_take_the_oldest(void **state)
{
	assert_false(takes_lowest("2.13.0"));
	assert_false(takes_lowest("2.15.0"));
	assert_false(takes_lowest("3.0"));
	assert_false(takes_lowest(""));
}

/* Two cached blocks of one size, each above max_split_size_mb, must both go for a larger request. */
static void all_equal_oversize_blocks_are_released(void **state)
{
	struct driver_pages *driver = driver_pages_new(512 * MIB, 2 * MIB);
	struct model_ground ground = {
		.driver = driver, .total_bytes = 512 * MIB, .limit_bytes = UINT64_MAX,
		.block_count = BLOCKS, .version = "2.15.0"
	};
	static const uint64_t sizes[] = { 80, 100, 150, 150 };
	struct arena *arena = arena_new();
	struct model_values values;
	const char *why;
	void *pytorch;

	assert_true(model_values_parse(&pytorch_model, "max_split_size_mb:64", &values, arena, &why));
	pytorch = pytorch_model.open(&values, &ground, &why);
	for (uint32_t block = 0; block < 4; block++)
		assert_true(pytorch_model.alloc(pytorch, &(struct model_request){
			.bytes = sizes[block] * MIB, .block = block }));
	for (uint32_t block = 0; block < 4; block++)
		pytorch_model.free(pytorch, block);
	assert_true(pytorch_model.alloc(pytorch, &(struct model_request){
		.bytes = 280 * MIB, .block = 4 }));
	assert_int_equal(pytorch_model.look(pytorch).reserved_bytes, (80 + 100 + 280) * MIB);
	pytorch_model.close(pytorch);
	driver_pages_free(driver);
	arena_free(arena);
}

static void versions_are_compared_by_number(void **state)
{
	assert_true(pytorch_is_before("2.9.1+cu128", 10));
	assert_false(pytorch_is_before("2.10.0", 10));
	assert_false(pytorch_is_before("2.10", 9));
	assert_true(pytorch_is_before("2", 9));
	assert_false(pytorch_is_before("", 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_equals_old_versions_take_the_lowest),
		cmocka_unit_test(of_equals_new_versions_take_the_oldest),
		cmocka_unit_test(all_equal_oversize_blocks_are_released),
		cmocka_unit_test(versions_are_compared_by_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
