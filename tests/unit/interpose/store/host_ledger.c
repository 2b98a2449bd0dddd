/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of host blocks: nothing is lost while there is room, nothing is found twice, a full
 * table counts what it dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/store/host_ledger.h"
#include "interpose/store/recording.h"

enum { BUCKETS = 1 << 14, ENTRIES = BUCKETS * CUF_HOST_BUCKET };

static struct cuf_header header;

static int make_table(void **state)
{
	header.lost[CUF_LOST_HOST_LEDGER] = 0;
	cuf_recording.header = &header;
	cuf_recording.host_bucket_mask = BUCKETS - 1;
	cuf_recording.host_ledger = aligned_alloc(64, ENTRIES * sizeof(struct cuf_host_block));
	for (unsigned i = 0; i < ENTRIES; i++)
		cuf_recording.host_ledger[i] = (struct cuf_host_block){ 0, 0 };
	cuf_at_fork_child_run();
	return 0;
}

static int drop_table(void **state)
{
	free(cuf_recording.host_ledger);
	return 0;
}

static unsigned used_entries(void)
{
	unsigned used = 0;
	for (unsigned i = 0; i < ENTRIES; i++)
		used += cuf_recording.host_ledger[i].word0 != 0;
	return used;
}

/* Blocks are where malloc puts them: one behind another, or a size class apart. */
static uint64_t addr_of(unsigned block, unsigned stride)
{
	return 0x560649000010ull + (uint64_t)block * stride;
}

static void fill(unsigned blocks, unsigned stride)
{
	for (unsigned i = 0; i < blocks; i++)
		assert_true(cuf_host_ledger_add(addr_of(i, stride), i & 0x3fff,
		                                cuf_host_word1(7, i + 1)));
	assert_int_equal(header.lost[CUF_LOST_HOST_LEDGER], 0);
	assert_int_equal(used_entries(), blocks);
}

static void take_all(unsigned blocks, unsigned stride)
{
	struct cuf_host_block entry;
	for (unsigned i = blocks; i-- > 0;) {
		assert_true(cuf_host_ledger_take(addr_of(i, stride), &entry));
		assert_int_equal(cuf_host_bytes(entry.word1), i + 1);
		assert_int_equal(cuf_host_addr(entry.word0), addr_of(i, stride));
		assert_false(cuf_host_ledger_take(addr_of(i, stride), &entry));
	}
	assert_int_equal(used_entries(), 0);
}

static void test_host_ledger__holds_every_block_while_there_is_room(void **state)
{
	static const unsigned strides[] = { 16, 32, 80, 4096, 1 << 21 };
	for (unsigned s = 0; s < sizeof strides / sizeof *strides; s++) {
		fill(ENTRIES / 100 * 90, strides[s]);
		take_all(ENTRIES / 100 * 90, strides[s]);
	}
}

/* A table that was full once has blocks at every level; churn must not strand one. */
static void test_host_ledger__replaces_blocks_of_a_full_table(void **state)
{
	struct cuf_host_block entry;
	unsigned blocks = ENTRIES / 100 * 85;
	fill(blocks, 80);
	for (unsigned i = 0; i < 3 * blocks; i++) {
		assert_true(cuf_host_ledger_take(addr_of(i, 80), &entry));
		assert_true(cuf_host_ledger_add(addr_of(i + blocks, 80), 1, cuf_host_word1(7, i)));
	}
	assert_int_equal(header.lost[CUF_LOST_HOST_LEDGER], 0);
	assert_int_equal(used_entries(), blocks);
}

static void test_host_ledger__counts_what_it_could_not_hold(void **state)
{
	unsigned held = 0;
	for (unsigned i = 0; i < ENTRIES + 1000; i++)
		held += cuf_host_ledger_add(addr_of(i, 48), 0, 1);
	assert_true(held <= ENTRIES);
	assert_int_equal(used_entries(), held);
	assert_int_equal(header.lost[CUF_LOST_HOST_LEDGER], ENTRIES + 1000 - held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_host_ledger__holds_every_block_while_there_is_room, make_table,
			drop_table),
		cmocka_unit_test_setup_teardown(test_host_ledger__replaces_blocks_of_a_full_table,
		                                make_table, drop_table),
		cmocka_unit_test_setup_teardown(test_host_ledger__counts_what_it_could_not_hold,
		                                make_table, drop_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
