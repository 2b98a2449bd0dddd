/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device ring: order, overwritten events counted exactly, segments of dead threads reused, many
 * threads.
 */
#include <pthread.h>
#include "tests/unit/fixtures/recorder.h"

static const struct cuf_segment *segment(unsigned i)
{
	return (const void *)(cuf_recording.rings[CUF_RING_DEVICE].at +
	                      i * cuf_recording.rings[CUF_RING_DEVICE].segment_bytes);
}

/* Events in the ring; every one must be whole, and a segment's in rising order. */
static uint64_t count_events(void)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < cuf_recording.rings[CUF_RING_DEVICE].segment_count; i++) {
		const struct cuf_segment *s = segment(i);
		const struct cuf_event *e = (const void *)(s + 1);
		uint64_t last = 0;
		for (uint32_t n = 0; n < s->used; n++, last = e[n - 1].seq)
			assert_true(e[n].seq > last);
		count += s->used;
	}
	return count;
}

static void churn(unsigned pairs, uint64_t base)
{
	for (unsigned i = 0; i < pairs; i++) {
		fixture_alloc(CUF_KIND_DEVICE, base + (i % 16) * 512, 512);
		fixture_free(CUF_KIND_DEVICE, base + (i % 16) * 512);
	}
}

static void test_ring__holds_every_event_while_there_is_room(void **state)
{
	churn(100, 0x10000);
	assert_int_equal(count_events(), cuf_recording.header->next_seq);
	assert_int_equal(cuf_recording.header->overwritten, 0);
}

static void test_ring__counts_what_it_overwrote(void **state)
{
	churn(40000, 0x20000);
	assert_true(cuf_recording.header->overwritten > 0);
	assert_int_equal(count_events() + cuf_recording.header->overwritten,
	                 cuf_recording.header->next_seq);
}

static void *short_life(void *argument)
{
	churn(3, (uint64_t)(uintptr_t)argument << 20);
	return NULL;
}

static void test_ring__thread_churn_does_not_eat_the_ring(void **state)
{
	uint64_t tickets = cuf_recording.header->next_ticket;
	for (uintptr_t i = 1; i <= 2000; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, short_life, (void *)i), 0);
		pthread_join(thread, NULL);
	}
	/*
	 * 12,000 events fill 48 segments: short-lived threads share segments instead of owning
	 * one each
	 */
	assert_true(cuf_recording.header->next_ticket - tickets < 200);
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_THREADS], 0);
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_RING], 0);
}

enum { THREADS = 64, PAIRS = 500, KEPT = 5 };

static void *live_thread(void *argument)
{
	uint64_t base = (uint64_t)(uintptr_t)argument << 32;
	churn(PAIRS, base);
	for (unsigned i = 0; i < KEPT; i++)
		fixture_alloc(CUF_KIND_DEVICE, base + 0x100000 + i * 512, 512);
	return NULL;
}

static void test_ring__many_threads_leave_an_exact_ledger(void **state)
{
	pthread_t threads[THREADS];
	uint64_t before = cuf_recording.header->next_seq,
		 bytes = cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE];
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, live_thread, (void *)(i + 100)),
		                 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(cuf_recording.header->next_seq - before, THREADS * (2 * PAIRS + KEPT));
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE] - bytes,
	                 THREADS * KEPT * 512);
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_RING], 0);
	assert_int_equal(count_events() + cuf_recording.header->overwritten,
	                 cuf_recording.header->next_seq);
	for (uintptr_t i = 0; i < THREADS; i++)
		for (unsigned k = 0; k < KEPT; k++)
			assert_true(fixture_free(CUF_KIND_DEVICE,
			                         ((uint64_t)(i + 100) << 32) + 0x100000 + k * 512));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring__holds_every_event_while_there_is_room),
		cmocka_unit_test(test_ring__counts_what_it_overwrote),
		cmocka_unit_test(test_ring__thread_churn_does_not_eat_the_ring),
		cmocka_unit_test(test_ring__many_threads_leave_an_exact_ledger),
	};
	fixture_start("size=16MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
