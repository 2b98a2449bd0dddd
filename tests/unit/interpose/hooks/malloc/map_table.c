/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps: what overlaps a range is found and split, compared with a model of one byte a
 * page.
 */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/hooks/malloc/map_table.h"
#include "interpose/platform/at_fork_child.h"

enum { PAGE = 4096, PAGES = 64 };

static void test_map_table__what_is_cut_leaves_pieces(void **state)
{
	struct cuf_map taken[4];
	struct cuf_map_sums sums;
	cuf_at_fork_child_run();
	assert_true(cuf_map_add((struct cuf_map){ 10 * PAGE, 20 * PAGE, CUF_MAP_ANONYMOUS }));
	assert_true(cuf_map_add((struct cuf_map){ 20 * PAGE, 30 * PAGE, CUF_MAP_FILE }));
	assert_int_equal(cuf_map_remove(15 * PAGE, 25 * PAGE, PAGE, taken, 4), 2);
	assert_int_equal(taken[0].start, 10 * PAGE);
	assert_int_equal(taken[0].end, 20 * PAGE);
	assert_int_equal(taken[1].kind, CUF_MAP_FILE);
	cuf_map_sum(&sums);
	assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], 5 * PAGE);
	assert_int_equal(sums.bytes[CUF_MAP_FILE], 5 * PAGE);
	assert_int_equal(cuf_map_remove(15 * PAGE, 25 * PAGE, PAGE, taken, 4), 0);
	/* pieces that are too small are dropped */
	assert_int_equal(cuf_map_remove(12 * PAGE, 13 * PAGE, 3 * PAGE, taken, 4), 1);
	cuf_map_sum(&sums);
	assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], 0);
}

static void test_map_table__agrees_with_a_byte_a_page(void **state)
{
	unsigned char truth[PAGES] = { 0 };
	unsigned seed = 7;
	cuf_at_fork_child_run();
	for (unsigned round = 0; round < 20000; round++) {
		struct cuf_map taken[PAGES];
		struct cuf_map_sums sums;
		uint64_t bytes[3] = { 0 }, first, past;
		unsigned kind;
		seed = seed * 1103515245u + 12345;
		first = seed >> 16 & 63;
		past = first + 1 + (seed >> 22 & 15);
		past = past < PAGES ? past : PAGES;
		kind = seed >> 27 & 3; /* 0, 3: unmap; 1: anonymous; 2: of a file */
		cuf_map_remove(first * PAGE, past * PAGE, PAGE, taken, PAGES);
		memset(truth + first, kind == 3 ? 0 : (int)kind, past - first);
		if (kind == 1 || kind == 2)
			cuf_map_add((struct cuf_map){ first * PAGE, past * PAGE,
						      kind == 2 ? CUF_MAP_FILE
								: CUF_MAP_ANONYMOUS });
		for (unsigned i = 0; i < PAGES; i++)
			bytes[truth[i]] += PAGE;
		cuf_map_sum(&sums);
		assert_int_equal(sums.bytes[CUF_MAP_ANONYMOUS], bytes[1]);
		assert_int_equal(sums.bytes[CUF_MAP_FILE], bytes[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_table__what_is_cut_leaves_pieces),
		cmocka_unit_test(test_map_table__agrees_with_a_byte_a_page),
	};
	fixture_start("host=off", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
