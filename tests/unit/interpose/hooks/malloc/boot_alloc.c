/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of the first moments: aligned, recognisable, bounded. */
#include "tests/unit/fixtures/recorder.h"
#include <pthread.h>
#include "interpose/hooks/malloc/boot_alloc.h"

static void test_boot__blocks_are_aligned_zeroed_and_apart(void **state)
{
	char *last = NULL;
	for (size_t bytes = 0; bytes < 100; bytes += 7) {
		char *p = cuf_boot_alloc(bytes, 1);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_true(cuf_boot_owns(p));
		assert_int_equal(cuf_boot_size(p), bytes);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, bytes);
		assert_true(p > last);
		last = p + bytes;
	}
}

static void test_boot__large_alignments_are_kept(void **state)
{
	for (size_t alignment = 16; alignment <= 16384; alignment *= 2) {
		void *p = cuf_boot_alloc(24, alignment);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignment, 0);
		assert_int_equal(cuf_boot_size(p), 24);
	}
}

static void test_boot__knows_only_its_own(void **state)
{
	int local;
	assert_false(cuf_boot_owns(NULL));
	assert_false(cuf_boot_owns(&local));
	assert_false(cuf_boot_owns(cuf_boot_arena - 1));
	assert_false(cuf_boot_owns(cuf_boot_arena + CUF_BOOT_BYTES));
	assert_true(cuf_boot_owns(cuf_boot_arena + CUF_BOOT_BYTES - 1));
}

static void *take_many(void *taken)
{
	for (unsigned i = 0; i < 200; i++) {
		uint32_t *p = cuf_boot_alloc(sizeof *p, 16);
		assert_non_null(p);
		assert_int_equal(*p, 0); /* not another thread's */
		*p = 1;
	}
	return taken;
}

static void test_boot__threads_get_different_blocks(void **state)
{
	pthread_t threads[4];
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* Last: leaves the arena full. */
static void test_boot__says_no_when_full(void **state)
{
	assert_null(cuf_boot_alloc(CUF_BOOT_BYTES, 16));
	assert_null(cuf_boot_alloc(SIZE_MAX, 16));
	assert_null(cuf_boot_alloc(1, (size_t)1 << 40));
	while (cuf_boot_alloc(1000, 16))
		;
	while (cuf_boot_alloc(1, 16))
		;
	assert_null(cuf_boot_alloc(0, 16));
	assert_null(cuf_boot_alloc(64, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot__blocks_are_aligned_zeroed_and_apart),
		cmocka_unit_test(test_boot__large_alignments_are_kept),
		cmocka_unit_test(test_boot__knows_only_its_own),
		cmocka_unit_test(test_boot__threads_get_different_blocks),
		cmocka_unit_test(test_boot__says_no_when_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
