/* SPDX-License-Identifier: Apache-2.0 */
/* The note of the host's peak: right sums, the largest sites, bounded tables, two notes in turn. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/host_peak.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/store/host_ledger.h"

enum { MIB = 1 << 20 };

static int64_t live_bytes;

/* A program anew: nothing is live, and nothing noted. */
static int begin_anew(void **state)
{
	(void)state;
	assert_int_equal(cuf_recording_open(cuf_options.size), 0);
	cuf_at_fork_child_run();
	live_bytes = 0;
	return 0;
}

/* The block whose number is n, of this call site. */
static void add_block(unsigned n, uint32_t stack, uint64_t bytes)
{
	assert_true(cuf_host_ledger_add(0x700000000000ull + n * 64ull, 0,
					cuf_host_word1(stack, bytes)));
	live_bytes += (int64_t)bytes;
}

static const struct cuf_host_peak *newest(void)
{
	const struct cuf_host_peak *notes = cuf_recording.host_peaks;
	return &notes[notes[1].number > notes[0].number];
}

static void check_sum(const struct cuf_host_peak *note)
{
	uint64_t sum = note->rest[0].exact_bytes + note->rest[1].exact_bytes, last = UINT64_MAX;
	for (uint64_t i = 0; i < note->site_count; i++) {
		assert_true(note->sites[i].exact_bytes <= last);
		last = note->sites[i].exact_bytes;
		sum += last;
	}
	assert_int_equal(sum, note->live_bytes);
}

static void test_host_peak__small_programs_get_no_note(void **state)
{
	(void)state;
	add_block(1, 1, 3 * MIB);
	cuf_host_peak_rise(live_bytes, 5, NULL);
	assert_int_equal(newest()->number, 0);
	assert_int_equal(cuf_recording.header->host_peak_bytes, 3 * MIB);
	assert_int_equal(cuf_recording.header->host_peak_ns, 5);
}

static void test_host_peak__sites_are_noted_in_steps_and_in_turn(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 100; n++) {
		add_block(n, 1 + n % 2, MIB);
		cuf_host_peak_rise(live_bytes, n, NULL);
		if (newest()->number)
			assert_true((int64_t)newest()->live_bytes * 21 / 20 + MIB >= live_bytes);
	}
	check_sum(newest());
	assert_int_equal(newest()->site_count, 2);
	assert_in_range(newest()->number, 20, 60);
	assert_int_equal(cuf_recording.host_peaks[0].number + 1 ==
			 cuf_recording.host_peaks[1].number ||
			 cuf_recording.host_peaks[1].number + 1 ==
			 cuf_recording.host_peaks[0].number, true);
	assert_int_equal(cuf_recording.header->host_peak_bytes, 100 * MIB);
}

static void test_host_peak__what_falls_and_rises_again_below_the_peak_changes_nothing(void **state)
{
	struct cuf_host_peak before;
	(void)state;
	add_block(1, 1, 64 * MIB);
	cuf_host_peak_rise(live_bytes, 1, NULL);
	before = *newest();
	cuf_host_peak_rise(live_bytes / 2, 2, NULL);
	cuf_host_peak_rise(live_bytes, 3, NULL);
	assert_memory_equal(&before, newest(), sizeof before);
	assert_int_equal(cuf_recording.header->host_peak_ns, 1);
}

static void test_host_peak__the_largest_of_many_sites_are_kept_and_the_rest_is_summed(void **state)
{
	const struct cuf_host_peak *note;
	(void)state;
	/* more than the table has room for, the largest at the end */
	for (unsigned n = 0; n < 20000; n++)
		add_block(n, 1 + n, n < 19990 ? 1000 : 5 * MIB);
	cuf_host_peak_rise(live_bytes, 1, NULL);
	note = newest();
	assert_int_equal(note->site_count, CUF_PEAK_SITES);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(note->sites[i].exact_bytes, 5 * MIB);
	assert_int_equal(note->sites[10].exact_bytes, 1000);
	check_sum(note);
	assert_int_equal(note->live_bytes, live_bytes);
	assert_int_equal(note->rest[0].exact_count, 20000 - CUF_PEAK_SITES);
}

static int64_t tenfold(uint64_t word0, uint64_t word1)
{
	(void)word0;
	return 10 * (int64_t)cuf_host_bytes(word1);
}

static void test_host_peak__sampled_blocks_have_their_weight_and_large_ones_are_exact(void **state)
{
	const struct cuf_host_peak_site *site;
	(void)state;
	add_block(1, 7, 1000);
	add_block(2, 7, 5 * MIB);
	assert_true(cuf_host_ledger_add(cuf_python_address(0x600000000000ull), 0,
					cuf_host_word1(7, 2000)));
	cuf_host_peak_rise(live_bytes, 1, tenfold);
	site = newest()->sites;
	assert_int_equal(newest()->site_count, 2);
	assert_int_equal(site[0].exact_bytes, 5 * MIB);
	assert_int_equal(site[0].sampled_bytes, 1000);
	assert_int_equal(site[0].weight_bytes, 10000);
	assert_int_equal(site[0].is_python, 0);
	assert_int_equal(site[1].is_python, 1);
	assert_int_equal(site[1].weight_bytes, 20000);
	assert_int_equal(newest()->live_bytes, 5 * MIB + 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_host_peak__small_programs_get_no_note, begin_anew),
		cmocka_unit_test_setup(test_host_peak__sites_are_noted_in_steps_and_in_turn,
				       begin_anew),
		cmocka_unit_test_setup(
			test_host_peak__what_falls_and_rises_again_below_the_peak_changes_nothing,
			begin_anew),
		cmocka_unit_test_setup(
			test_host_peak__the_largest_of_many_sites_are_kept_and_the_rest_is_summed,
			begin_anew),
		cmocka_unit_test_setup(
			test_host_peak__sampled_blocks_have_their_weight_and_large_ones_are_exact,
			begin_anew),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("host_peak", tests, NULL, NULL);
}
