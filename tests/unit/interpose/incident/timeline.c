/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: fixed size, falling resolution, nothing out of order. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/timeline.h"

static void test_timeline__weeks_fit_in_a_fixed_size(void **state)
{
	const struct cuf_header *h = cuf_recording.header;
	/* 64 x 4 s of ticks a ms apart */
	const uint64_t begin = h->start_ns + 1, step = 1000000, ticks = 4000000000ull / step * 64;
	uint64_t interval = h->sample_interval_ns, last = 0;
	for (uint64_t i = 0; i < ticks; i++)
		cuf_timeline_tick(begin + i * step);
	assert_true(h->sample_count <= cuf_recording.sample_slots);
	assert_true(h->sample_count >= cuf_recording.sample_slots / 2);
	assert_true(h->sample_interval_ns > interval);
	/* the beginning is never dropped */
	assert_int_equal(cuf_recording.samples[0].time_ns, begin);
	for (uint64_t i = 0; i < h->sample_count; i++) {
		assert_true(cuf_recording.samples[i].time_ns > last);
		last = cuf_recording.samples[i].time_ns;
		if (i)
			assert_true(last - cuf_recording.samples[i - 1].time_ns <=
			            h->sample_interval_ns + step);
		assert_true(cuf_recording.samples[i].rss_bytes > 100000 &&
		            cuf_recording.samples[i].rss_bytes != CUF_UNKNOWN);
	}
	assert_true(begin + ticks * step - last <= h->sample_interval_ns + step);
}

/* After weeks the spacing is minutes; what is known of a process that is killed is not that old. */
static void test_timeline__the_last_sample_is_recent_and_the_others_keep_their_spacing(void **state)
{
	struct cuf_header *h = cuf_recording.header;
	const uint64_t week = 604800000000000ull, spacing = 60000000000ull, tick = 50000000,
		       latest = 100000000;
	uint64_t begin, count;

	begin = cuf_recording.samples[h->sample_count - 1].time_ns + week;
	h->sample_interval_ns = spacing;
	cuf_timeline_sample(begin);
	count = h->sample_count;
	for (uint64_t now = begin + tick; now < begin + 3 * spacing; now += tick) {
		cuf_timeline_tick(now);
		assert_true(now - cuf_recording.samples[h->sample_count - 1].time_ns < latest);
	}
	assert_int_equal(h->sample_count, count + 3);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(cuf_recording.samples[count + i].time_ns,
				 begin + (i + 1) * spacing);
	/* one on demand takes the draft's place, and stays */
	cuf_timeline_sample(begin + 3 * spacing - 1);
	cuf_timeline_sample(begin + 3 * spacing);
	assert_int_equal(h->sample_count, count + 4);
}

static void test_timeline__a_sample_on_demand_is_never_refused(void **state)
{
	const struct cuf_header *h = cuf_recording.header;
	uint64_t now = cuf_recording.samples[h->sample_count - 1].time_ns;
	for (unsigned i = 1; i <= 2 * cuf_recording.sample_slots; i++) {
		cuf_timeline_sample(now + i);
		assert_int_equal(cuf_recording.samples[h->sample_count - 1].time_ns, now + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline__weeks_fit_in_a_fixed_size),
		cmocka_unit_test(
			test_timeline__the_last_sample_is_recent_and_the_others_keep_their_spacing),
		cmocka_unit_test(test_timeline__a_sample_on_demand_is_never_refused),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
