/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's pool as a model: packing, the threshold, and what it does before it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analysis/what_if/trials.h"

#define MIB (1ull << 20)
#define KIB (1ull << 10)
enum { BLOCKS = 64 };

struct open_pool { struct driver_pages *driver; void *state; };

static struct open_pool open_pool(uint64_t capacity_bytes, const char *typed)
{
	struct open_pool pool = { .driver = driver_pages_new(capacity_bytes, 2 * MIB) };
	struct arena *arena = arena_new();
	struct model_values values;
	const char *why;

	assert_true(model_values_parse(&cuda_async_model, typed, &values, arena, &why));
	pool.state = cuda_async_model.open(
		&values, &(struct model_ground){ .driver = pool.driver, .block_count = BLOCKS }, &why);
	arena_free(arena);
	return pool;
}

static void close_pool(struct open_pool *pool)
{
	cuda_async_model.close(pool->state);
	driver_pages_free(pool->driver);
}

static bool alloc(struct open_pool *pool, uint32_t block, uint64_t bytes)
{
	return cuda_async_model.alloc(pool->state,
				      &(struct model_request){ .bytes = bytes, .block = block });
}

static uint64_t reserved(const struct open_pool *pool)
{
	return cuda_async_model.look(pool->state).reserved_bytes;
}

static void small_blocks_share_pages(void **state)
{
	struct open_pool pool = open_pool(64 * MIB, "");

	for (uint32_t i = 0; i < 32; i++)
		assert_true(alloc(&pool, i, 64 * KIB));
	assert_int_equal(reserved(&pool), 2 * MIB);
	assert_int_equal(driver_look(pool.driver).used_bytes, 2 * MIB);
	for (uint32_t i = 0; i < 31; i++)
		cuda_async_model.free(pool.state, i);
	assert_int_equal(reserved(&pool), 2 * MIB); /* one block keeps the page */
	cuda_async_model.free(pool.state, 31);
	assert_int_equal(reserved(&pool), 0);
	close_pool(&pool);
}

static void the_threshold_is_kept(void **state)
{
	struct open_pool pool =
		open_pool(64 * MIB, "cudaMemPoolAttrReleaseThreshold:8MiB");

	assert_true(alloc(&pool, 0, 20 * MIB));
	cuda_async_model.free(pool.state, 0);
	assert_int_equal(reserved(&pool), 8 * MIB);
	assert_int_equal(cuda_async_model.look(pool.state).releasable_bytes, 8 * MIB);
	close_pool(&pool);
}

static void unused_pages_are_released_before_it_refuses(void **state)
{
	struct open_pool pool =
		open_pool(64 * MIB, "cudaMemPoolAttrReleaseThreshold:1GiB");

	for (uint32_t i = 0; i < 32; i++)
		assert_true(alloc(&pool, i, 2 * MIB));
	for (uint32_t i = 0; i < 32; i += 2)
		cuda_async_model.free(pool.state, i);
	assert_int_equal(reserved(&pool), 64 * MIB);
	assert_true(alloc(&pool, 40, 30 * MIB)); /* in no gap, but in pages of other addresses */
	assert_int_equal(reserved(&pool), 62 * MIB);
	assert_false(alloc(&pool, 41, 4 * MIB));
	assert_false(alloc(&pool, 42, UINT64_MAX));
	assert_true(alloc(&pool, 43, 2 * MIB));
	close_pool(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_blocks_share_pages),
		cmocka_unit_test(the_threshold_is_kept),
		cmocka_unit_test(unused_pages_are_released_before_it_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
