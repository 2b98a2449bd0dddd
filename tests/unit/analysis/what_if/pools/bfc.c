/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's arena as a model: when a chunk is split, and how regions grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analysis/what_if/trials/bfc.h"

#define MIB (1ull << 20)
enum { BLOCKS = 8 };

static const struct bfc_settings settings = {
	.first_bytes = 16 * MIB, .limit_bytes = 256 * MIB, .keep_bytes = 128 * MIB,
	.grow_most_bytes = 256 * MIB,
};

/* Allocates blocks of these sizes. Returns what the arena then has of the driver. */
static uint64_t reserved_for(const uint64_t *mib, uint32_t count)
{
	struct driver_pages *driver = driver_pages_new(256 * MIB, 2 * MIB);
	const struct model_ground ground = { .driver = driver, .block_count = BLOCKS };
	void *bfc = bfc_open(&settings, &ground);
	uint64_t reserved_bytes;

	for (uint32_t i = 0; i < count; i++) {
		const struct model_request request = { .bytes = mib[i] * MIB, .block = i };
		assert_true(bfc_alloc(bfc, &request));
	}
	reserved_bytes = bfc_look(bfc).reserved_bytes;
	bfc_close(bfc);
	driver_pages_free(driver);
	return reserved_bytes;
}

static void a_chunk_of_twice_the_request_is_split(void **state)
{
	(void)state;
	assert_int_equal(reserved_for((const uint64_t[]){ 8, 8 }, 2), 16 * MIB);
	assert_int_equal(reserved_for((const uint64_t[]){ 4, 4, 4, 4 }, 4), 16 * MIB);
}

static void a_smaller_chunk_is_given_whole(void **state)
{
	(void)state;
	assert_int_equal(reserved_for((const uint64_t[]){ 10, 4 }, 2), (16 + 32) * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chunk_of_twice_the_request_is_split),
		cmocka_unit_test(a_smaller_chunk_is_given_whole),
	};
	return cmocka_run_group_tests_name("bfc", tests, NULL, NULL);
}
