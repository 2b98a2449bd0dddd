/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of seconds, tens of seconds and minutes: no peak is missed, however short it was. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/device.h"
#include "interpose/incident/recent.h"

enum { MIB = 1 << 20, DEVICE = 3, AWAY = 6 };
static const uint64_t second = 1000000000u;

static const struct cuf_recent *find(unsigned subject, unsigned width, uint64_t now_ns)
{
	uint64_t key = cuf_recent_key(subject, width, now_ns / second / cuf_recent_seconds(width));

	for (uint64_t i = 0; i < CUF_RECENT_RINGS * (cuf_recording.recent_mask + 1); i++)
		if (cuf_recording.recent[i].key == key)
			return &cuf_recording.recent[i];
	return NULL;
}

/* A block of `bytes` on the device is allocated (1) or freed (-1). */
static void count(int sign, uint64_t bytes, uint64_t now_ns)
{
	const struct cuf_block block = { .kind = CUF_KIND_DEVICE, .device = DEVICE,
					 .bytes = bytes };

	cuf_device_count(&block, sign, now_ns);
}

static void test_recent__a_spike_is_in_its_second_and_later_in_the_coarser_buckets(void **state)
{
	const uint64_t at = 1000 * second;
	const struct cuf_recent *bucket;

	(void)state;
	count(1, 100 * MIB, at);
	count(1, 900 * MIB, at + 5);
	count(-1, 900 * MIB, at + 6);
	bucket = find(DEVICE, CUF_RECENT_SECOND, at);
	assert_int_equal(bucket->live_min_bytes, 0);
	assert_int_equal(bucket->live_max_bytes, 1000 * MIB);
	assert_int_equal(bucket->live_last_bytes, 100 * MIB);
	assert_true(bucket->free_min_bytes == CUF_UNKNOWN &&
		    bucket->inner_max_bytes == CUF_UNKNOWN);
	assert_null(find(DEVICE, CUF_RECENT_TEN, at));
	count(1, MIB, at + 3 * second); /* two seconds had no event */
	assert_null(find(DEVICE, CUF_RECENT_SECOND, at + second));
	for (unsigned width = CUF_RECENT_TEN; width < CUF_RECENT_WIDTHS; width++) {
		bucket = find(DEVICE, width, at);
		assert_int_equal(bucket->live_max_bytes, 1000 * MIB);
		assert_int_equal(bucket->live_last_bytes, 100 * MIB);
	}
	/* the second began with what the one before it left */
	bucket = find(DEVICE, CUF_RECENT_SECOND, at + 3 * second);
	assert_int_equal(bucket->live_min_bytes, 100 * MIB);
	assert_int_equal(bucket->live_max_bytes, 101 * MIB);
}

static void test_recent__hours_keep_their_peaks_though_the_seconds_are_gone(void **state)
{
	const uint64_t at = 10000 * second;
	const struct cuf_recent *bucket;
	uint64_t slots = cuf_recording.recent_mask + 1;

	(void)state;
	count(1, 5000u * (uint64_t)MIB, at);
	count(-1, 5000u * (uint64_t)MIB, at);
	for (uint64_t i = 1; i <= slots + 60; i++) {
		count(1, MIB, at + i * second);
		count(-1, MIB, at + i * second);
	}
	assert_null(find(DEVICE, CUF_RECENT_SECOND, at));
	bucket = find(DEVICE, CUF_RECENT_MINUTE, at);
	assert_non_null(bucket);
	assert_true(bucket->live_max_bytes >= 5000u * (uint64_t)MIB);
}

/* A ring comes round to the place of the second before: that one is not lost. */
static void test_recent__a_silence_as_long_as_the_ring_loses_nothing(void **state)
{
	const uint64_t at = 100000 * second, slots = cuf_recording.recent_mask + 1;
	uint64_t peak;

	(void)state;
	count(1, 7000u * (uint64_t)MIB, at);
	peak = cuf_device_live_bytes(&cuf_recording.devices[DEVICE]);
	count(-1, 7000u * (uint64_t)MIB, at);
	count(1, MIB, at + slots * second);
	assert_int_equal(find(DEVICE, CUF_RECENT_TEN, at)->live_max_bytes, peak);
	/* an event that comes late does not overwrite what is newer */
	count(1, MIB, at);
	assert_non_null(find(DEVICE, CUF_RECENT_SECOND, at + slots * second));
}

static void test_recent__free_memory_and_the_framework(void **state)
{
	const uint64_t at = 200000 * second;
	const struct cuf_recent *bucket;

	(void)state;
	cuf_recent_free(DEVICE, 500, at);
	cuf_recent_free(DEVICE, 200, at);
	cuf_recent_free(DEVICE, 300, at);
	cuf_recent_inner(DEVICE, (struct cuf_framework_level){ 10, 20 }, at);
	cuf_recent_inner(DEVICE, (struct cuf_framework_level){ 5, 30 }, at);
	bucket = find(DEVICE, CUF_RECENT_SECOND, at);
	assert_int_equal(bucket->free_min_bytes, 200);
	assert_int_equal(bucket->free_last_bytes, 300);
	assert_int_equal(bucket->inner_max_bytes, 10);
	assert_int_equal(bucket->outer_max_bytes, 30);
}

static void test_recent__a_level_below_zero_or_of_a_subject_without_rings_is_left_out(void **state)
{
	const uint64_t at = 300000 * second;

	(void)state;
	cuf_recent_live(AWAY, UINT64_MAX - 5, at);
	assert_null(find(AWAY, CUF_RECENT_SECOND, at));
	for (unsigned subject = CUF_RECENT_SUBJECTS; subject < 20; subject++)
		cuf_recent_live(subject, 1, at);
	cuf_recent_live(CUF_RECENT_HOST, CUF_UNKNOWN, at);
	cuf_recent_inner(CUF_RECENT_HOST, (struct cuf_framework_level){ 7, CUF_UNKNOWN }, at);
	assert_true(find(CUF_RECENT_HOST, CUF_RECENT_SECOND, at)->live_max_bytes == CUF_UNKNOWN);
	assert_int_equal(find(CUF_RECENT_HOST, CUF_RECENT_SECOND, at)->inner_max_bytes, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_recent__a_spike_is_in_its_second_and_later_in_the_coarser_buckets),
		cmocka_unit_test(test_recent__hours_keep_their_peaks_though_the_seconds_are_gone),
		cmocka_unit_test(test_recent__a_silence_as_long_as_the_ring_loses_nothing),
		cmocka_unit_test(test_recent__free_memory_and_the_framework),
		cmocka_unit_test(
			test_recent__a_level_below_zero_or_of_a_subject_without_rings_is_left_out),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
