/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests: ladders, outcomes, which slots are kept, and the snapshot of holes and call
 * sites.
 */
#include "tests/unit/fixtures/recorder.h"
#include <pthread.h>
#include <sys/resource.h>
#include "interpose/incident/incident.h"

static const struct cuf_incident *by_number(uint64_t number)
{
	for (unsigned i = 0; i < cuf_recording.incident_slots; i++)
		if (cuf_recording.incidents[i].number == number)
			return &cuf_recording.incidents[i];
	return NULL;
}

static const struct cuf_incident *last(void)
{
	return by_number(cuf_recording.header->incident_count);
}

static void test_incident__retries_of_one_need_are_one_ladder(void **state)
{
	uint64_t first;
	fixture_fail(1000);
	first = last()->number;
	fixture_fail(1000);
	fixture_fail(1000);
	assert_int_equal(last()->attempt, 2);
	assert_int_equal(last()->first, first);
	fixture_fail(2000);
	assert_int_equal(last()->attempt, 0);
	assert_int_equal(last()->first, last()->number);
}

static void test_incident__a_success_of_the_same_size_recovers_it(void **state)
{
	fixture_fail(4096);
	assert_non_null(cuf_incident_unresolved());
	fixture_alloc(CUF_KIND_DEVICE, 0x5000, 64); /* small things do not resolve it */
	assert_non_null(cuf_incident_unresolved());
	fixture_alloc(CUF_KIND_DEVICE, 0x6000, 4096);
	assert_null(cuf_incident_unresolved());
	assert_int_equal(last()->outcome, 1);
	assert_true(last()->resolved_seq > last()->seq);
	fixture_free(CUF_KIND_DEVICE, 0x5000);
	fixture_free(CUF_KIND_DEVICE, 0x6000);
}

static void *allocate_much(void *argument)
{
	for (uint64_t i = 0; i < 100; i++)
		fixture_alloc(CUF_KIND_DEVICE, 0x900000 + i * 0x10000, 8192);
	return argument;
}

/* Other threads do not stop immediately when one thread ends the process: its last lines must still
 * be printed. */
static void test_incident__another_threads_success_resolves_nothing_at_first(void **state)
{
	pthread_t other;
	fixture_fail(4096);
	pthread_create(&other, NULL, allocate_much, NULL);
	pthread_join(other, NULL);
	assert_non_null(cuf_incident_unresolved());
	/* as if it were long ago */
	((struct cuf_incident *)(uintptr_t)last())->time_ns -= 6000000000;
	for (uint64_t i = 0; i < 100; i++)
		fixture_free(CUF_KIND_DEVICE, 0x900000 + i * 0x10000);
	pthread_create(&other, NULL, allocate_much, NULL);
	pthread_join(other, NULL);
	assert_null(cuf_incident_unresolved());
	assert_int_equal(last()->outcome, 2);
	for (uint64_t i = 0; i < 100; i++)
		fixture_free(CUF_KIND_DEVICE, 0x900000 + i * 0x10000);
}

static void test_incident__holes_are_exact(void **state)
{
	const uint64_t page = 0x7f0000000000;
	const struct cuf_incident *i;
	/* a page: 512 KiB used, 256 KiB hole, 256 KiB used, 1 MiB to its end; a block of 3 MiB: 1
	 * MiB free in its last page */
	fixture_alloc(CUF_KIND_DEVICE, page, 512 << 10);
	fixture_alloc(CUF_KIND_DEVICE, page + (768 << 10), 256 << 10);
	fixture_alloc(CUF_KIND_DEVICE, page + (2 << 20), 3 << 20);
	fixture_alloc(CUF_KIND_RESERVATION, 0x10000000, 64 << 20);
	fixture_alloc(CUF_KIND_MAPPING, 0x10000000, 2 << 20);
	fixture_alloc(CUF_KIND_MAPPING, 0x10000000 + (8 << 20), 2 << 20);
	fixture_fail(1ull << 30);
	i = last();
	assert_int_equal(i->page_hole_bytes, 1 << 20);
	assert_int_equal(i->pages, 2);
	assert_int_equal(i->pages_partial, 2);
	assert_int_equal(i->page_free_bytes, (256 << 10) + (1 << 20) + (1 << 20));
	assert_int_equal(i->vmm_hole_bytes, 54 << 20);
	assert_int_equal(i->vmm_mapped_bytes, 4 << 20);
	assert_int_equal(i->live_bytes[CUF_KIND_DEVICE], (512 << 10) + (256 << 10) + (3 << 20));
	assert_int_equal(i->live_count[CUF_KIND_DEVICE], 3);
	assert_true(i->site_count >= 1);
	assert_true(i->sites[0].bytes >= i->sites[i->site_count - 1].bytes);
	assert_int_equal(i->free_bytes, 1 << 20);
	assert_int_equal(i->result, 2);
}

static void test_incident__first_failures_are_kept_for_ever(void **state)
{
	uint64_t lost = cuf_recording.header->lost[CUF_LOST_INCIDENTS];
	for (unsigned i = 0; i < 3 * cuf_recording.incident_slots; i++)
		fixture_fail(100 + i);
	for (uint64_t n = 1; n <= cuf_recording.incident_slots / 4; n++)
		assert_non_null(by_number(n));
	assert_non_null(last());
	assert_true(cuf_recording.header->lost[CUF_LOST_INCIDENTS] > lost);
}

static void test_incident__has_the_limits_in_force(void **state)
{
	struct rlimit limit = { (rlim_t)1 << 40, RLIM_INFINITY };
	fixture_fail(1000);
	assert_true(last()->address_bytes != CUF_UNKNOWN && last()->data_bytes != CUF_UNKNOWN);
	assert_true(last()->address_bytes > last()->rss_bytes / 2);
	assert_true(last()->address_bytes > last()->data_bytes && last()->data_bytes > 0);
	assert_true(last()->address_max_bytes == CUF_UNKNOWN);
	assert_true(last()->data_max_bytes == CUF_UNKNOWN);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = (rlim_t)1 << 39;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	fixture_fail(1000);
	assert_int_equal(last()->address_max_bytes, (uint64_t)1 << 40);
	assert_int_equal(last()->data_max_bytes, (uint64_t)1 << 39);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incident__retries_of_one_need_are_one_ladder),
		cmocka_unit_test(test_incident__a_success_of_the_same_size_recovers_it),
		cmocka_unit_test(test_incident__another_threads_success_resolves_nothing_at_first),
		cmocka_unit_test(test_incident__holes_are_exact),
		cmocka_unit_test(test_incident__first_failures_are_kept_for_ever),
		cmocka_unit_test(test_incident__has_the_limits_in_force),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("incident", tests, NULL, NULL);
}
