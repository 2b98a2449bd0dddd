/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger and the totals: every rule of recorder.h that changes what is live. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/device.h"
#include "interpose/store/ledger.h"

static uint64_t live(unsigned kind) { return cuf_recording.devices[0].live_bytes[kind]; }

static void count_block(const struct cuf_block *block, void *count)
{
	(void)block;
	++*(unsigned *)count;
}

static unsigned live_entries(void)
{
	unsigned count = 0;
	cuf_ledger_each(count_block, &count);
	return count;
}

static void test_ledger__free_takes_what_alloc_added(void **state)
{
	struct cuf_block block;
	fixture_alloc(CUF_KIND_DEVICE, 0x7f0000000000, 4096);
	assert_true(cuf_block_find(CUF_SPACE_DEVICE, 0x7f0000000000, 0, &block));
	assert_int_equal(block.bytes, 4096);
	assert_int_equal(live(CUF_KIND_DEVICE), 4096);
	assert_true(fixture_free(CUF_KIND_DEVICE, 0x7f0000000000));
	assert_int_equal(live(CUF_KIND_DEVICE), 0);
	assert_int_equal(live_entries(), 0);
}

static void test_ledger__unknown_free_is_counted_and_harmless(void **state)
{
	uint64_t before = cuf_recording.header->unknown_frees;
	assert_false(fixture_free(CUF_KIND_DEVICE, 0xdead000));
	assert_int_equal(cuf_recording.header->unknown_frees, before + 1);
}

static void test_ledger__equal_numbers_in_different_spaces_do_not_clash(void **state)
{
	fixture_alloc(CUF_KIND_VMM, 0x1000, 2 << 20);
	fixture_alloc(CUF_KIND_RESERVATION, 0x1000, 1 << 30);
	fixture_alloc(CUF_KIND_MAPPING, 0x1000, 2 << 20);
	assert_int_equal(live_entries(), 3);
	assert_true(fixture_free(CUF_KIND_MAPPING, 0x1000));
	assert_int_equal(live(CUF_KIND_VMM), 2 << 20);
	assert_true(fixture_free(CUF_KIND_VMM, 0x1000));
	assert_true(fixture_free(CUF_KIND_RESERVATION, 0x1000));
}

static void test_ledger__release_while_mapped_is_not_a_free(void **state)
{
	struct cuf_call call;
	struct cuf_block block;
	fixture_alloc(CUF_KIND_VMM, 0x55, 2 << 20);
	cuf_call_begin(&call, 147, __builtin_frame_address(0));
	assert_int_equal(cuf_block_add_refs(&call, CUF_SPACE_HANDLE, 0x55, 0, 1, &block), 0);
	assert_int_equal(cuf_block_add_refs(&call, CUF_SPACE_HANDLE, 0x55, -1, 0, &block), 0);
	assert_int_equal(live(CUF_KIND_VMM), 2 << 20);
	assert_int_equal(cuf_block_add_refs(&call, CUF_SPACE_HANDLE, 0x55, 0, -1, &block), 1);
	assert_int_equal(live(CUF_KIND_VMM), 0);
	/* refused: the block comes back as it was before that call */
	cuf_block_restore(&call, &block);
	assert_int_equal(live(CUF_KIND_VMM), 2 << 20);
	assert_int_equal(cuf_block_add_refs(&call, CUF_SPACE_HANDLE, 0x55, 0, -1, &block), 1);
	assert_int_equal(cuf_block_add_refs(&call, CUF_SPACE_HANDLE, 0x55, 0, -1, &block), -1);
	cuf_call_end();
}

static void test_ledger__a_missed_free_is_replaced_and_counted(void **state)
{
	uint64_t before = cuf_recording.header->replaced;
	fixture_alloc(CUF_KIND_DEVICE, 0x9000, 100);
	fixture_alloc(CUF_KIND_DEVICE, 0x9000, 300);
	assert_int_equal(cuf_recording.header->replaced, before + 1);
	assert_int_equal(live(CUF_KIND_DEVICE), 300);
	assert_true(fixture_free(CUF_KIND_DEVICE, 0x9000));
	assert_int_equal(live(CUF_KIND_DEVICE), 0);
}

static void test_ledger__reset_frees_context_bound_blocks_alone(void **state)
{
	struct cuf_call call;
	struct cuf_request async = { .bytes = 77, .kind = CUF_KIND_ASYNC };
	uint64_t seq;
	fixture_alloc(CUF_KIND_DEVICE, 0xa000, 10);
	fixture_alloc(CUF_KIND_ARRAY, 0xb000, 20);
	cuf_call_begin(&call, 223, __builtin_frame_address(0));
	cuf_block_alloc(&call, &async, 0xc000);
	seq = cuf_event_note(&call, CUF_OP_RESET, &(struct cuf_request){ .device = 0 }, 0, 0);
	cuf_reset_apply(&call, &(struct cuf_request){ .device = 0, .flags = CUF_EVENT_CONTEXT_BOUND }, seq);
	cuf_call_end();
	assert_int_equal(live(CUF_KIND_DEVICE), 0);
	assert_int_equal(live(CUF_KIND_ARRAY), 0);
	assert_int_equal(live(CUF_KIND_ASYNC), 77);
	assert_true(fixture_free(CUF_KIND_ASYNC, 0xc000));
}

/* Blocks of one size side by side, as an arena lays them out, or 2 MiB apart; then each makes room
 * for another one. */
static void test_ledger__none_is_lost_while_nine_tenths_are_in_use(void **state)
{
	static const uint64_t strides[] = { 512, 64 << 10, 2 << 20 };
	uint64_t lost_before = cuf_recording.header->lost[CUF_LOST_LEDGER];
	for (unsigned s = 0; s < sizeof strides / sizeof *strides; s++) {
		uint64_t count = (cuf_recording.ledger_mask + 1) * 9 / 10;
		for (uint64_t i = 0; i < count; i++)
			fixture_alloc(CUF_KIND_DEVICE, 0x7f0000000000 + i * strides[s], 512);
		assert_int_equal(live_entries(), count);
		for (uint64_t i = 0; i < count; i++) {
			assert_true(fixture_free(CUF_KIND_DEVICE, 0x7f0000000000 + i * strides[s]));
			fixture_alloc(CUF_KIND_DEVICE, 0x7e0000000000 + i * strides[s], 512);
		}
		assert_int_equal(live_entries(), count);
		assert_int_equal(cuf_recording.header->lost[CUF_LOST_LEDGER], lost_before);
		for (uint64_t i = 0; i < count; i++)
			assert_true(fixture_free(CUF_KIND_DEVICE, 0x7e0000000000 + i * strides[s]));
	}
	assert_int_equal(live_entries(), 0);
}

static void test_ledger__what_does_not_fit_is_counted(void **state)
{
	uint64_t room = cuf_recording.ledger_mask + 1, added = room + room / 4;
	uint64_t lost_before = cuf_recording.header->lost[CUF_LOST_LEDGER], lost;
	unsigned freed = 0;
	for (uint64_t i = 0; i < added; i++)
		fixture_alloc(CUF_KIND_DEVICE, 0x7f0000000000 + i * 512, 512);
	lost = cuf_recording.header->lost[CUF_LOST_LEDGER] - lost_before;
	assert_true(lost >= added - room);
	assert_int_equal(live_entries() + lost, added);
	for (uint64_t i = 0; i < added; i++)
		freed += fixture_free(CUF_KIND_DEVICE, 0x7f0000000000 + i * 512);
	assert_int_equal(freed + lost, added);
	assert_int_equal(live_entries(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ledger__free_takes_what_alloc_added),
		cmocka_unit_test(test_ledger__unknown_free_is_counted_and_harmless),
		cmocka_unit_test(test_ledger__equal_numbers_in_different_spaces_do_not_clash),
		cmocka_unit_test(test_ledger__release_while_mapped_is_not_a_free),
		cmocka_unit_test(test_ledger__a_missed_free_is_replaced_and_counted),
		cmocka_unit_test(test_ledger__reset_frees_context_bound_blocks_alone),
		cmocka_unit_test(test_ledger__none_is_lost_while_nine_tenths_are_in_use),
		cmocka_unit_test(test_ledger__what_does_not_fit_is_counted),
	};
	fixture_start("size=4MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
