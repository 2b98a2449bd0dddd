/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of a framework's allocator: ring, ledger, totals, sampled stacks, and the ladder behind a
 * failure.
 */
#include <pthread.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/totals.h"
#include "interpose/record/framework.h"
#include "interpose/incident/incident.h"
#include "interpose/store/ledger.h"
#include "interpose/incident/timeline.h"

enum { HOOK = 402, HOOK_FAILURE = 404 };

static struct cuf_framework_level level; /* of device 0, as the framework has it */

static void report(uint64_t addr, int64_t bytes)
{
	level.allocated_bytes += (uint64_t)bytes;
	const struct cuf_report r = { addr, bytes, level.allocated_bytes, level.reserved_bytes,
		                      0,    HOOK, CUF_REPORT_BLOCK };
	cuf_framework_report(&r, __builtin_frame_address(0));
}

static void give_up(int64_t bytes)
{
	const struct cuf_report r = { 0, bytes,       level.allocated_bytes, level.reserved_bytes,
		                      0, HOOK_FAILURE, CUF_REPORT_FAILED };
	cuf_framework_report(&r, __builtin_frame_address(0));
}

static const struct cuf_event *last_event(void)
{
	const struct cuf_event *found = NULL;
	const struct cuf_ring_place *ring = &cuf_recording.rings[CUF_RING_FRAMEWORK];
	for (unsigned i = 0; i < ring->segment_count; i++) {
		const struct cuf_segment *s = (const void *)(ring->at + i * ring->segment_bytes);
		const struct cuf_event *e = (const void *)(s + 1);
		for (uint32_t n = 0; n < s->used; n++)
			if (!found || e[n].seq > found->seq)
				found = &e[n];
	}
	return found;
}

static const struct cuf_incident *incident(uint64_t number)
{
	for (unsigned i = 0; i < cuf_recording.incident_slots; i++)
		if (cuf_recording.incidents[i].number == number)
			return &cuf_recording.incidents[i];
	return NULL;
}

static const struct cuf_incident *last(void)
{
	return incident(cuf_recording.header->incident_count);
}

static void test_framework__a_block_is_in_ring_ledger_and_totals_and_no_device_memory(void **state)
{
	struct cuf_block block;
	uint64_t memory = cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE],
		 before = cuf_recording.header->overwritten;
	level.reserved_bytes = 20 << 20;
	report(0x7f0000000000, 3 << 20);
	assert_true(cuf_ledger_find(cuf_key(CUF_SPACE_FRAMEWORK, 0x7f0000000000), &block));
	assert_int_equal(block.bytes, 3 << 20);
	assert_int_equal(block.aux, level.allocated_bytes);
	assert_int_not_equal(block.stack, 0);
	assert_int_equal(last_event()->op, CUF_OP_ALLOC);
	assert_int_equal(last_event()->seq, block.seq);
	assert_int_equal((uint64_t)last_event()->extra << 9, 20 << 20);
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_FRAMEWORK], 3 << 20);
	assert_int_equal(cuf_recording.devices[0].live_count[CUF_KIND_FRAMEWORK], 1);
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE], memory);
	assert_int_equal(cuf_framework_level(0).allocated_bytes, level.allocated_bytes);
	report(0x7f0000000000, -(3 << 20));
	assert_false(cuf_ledger_find(cuf_key(CUF_SPACE_FRAMEWORK, 0x7f0000000000), &block));
	assert_int_equal(last_event()->op, CUF_OP_FREE);
	assert_int_equal(last_event()->alloc_stack, block.stack);
	assert_int_equal(last_event()->bytes, 3 << 20);
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_FRAMEWORK], 0);
	assert_int_equal(cuf_recording.header->framework_events, 2);
	assert_int_equal(cuf_recording.header->overwritten, before);
	assert_int_equal(cuf_framework_level(1).allocated_bytes, CUF_UNKNOWN);
}

static void test_framework__its_events_overwrite_none_of_the_drivers(void **state)
{
	uint64_t driver = cuf_recording.header->next_ticket;
	fixture_alloc(CUF_KIND_DEVICE, 0x10000, 4096);
	for (unsigned i = 0; i < 200000; i++)
		report(0x7f0000000000 + (i / 2) % 64 * 4096, i % 2 ? -4096 : 4096);
	assert_true(cuf_recording.header->framework_overwritten > 0);
	assert_int_equal(cuf_recording.header->overwritten, 0);
	assert_true(cuf_recording.header->next_ticket <= driver + 1);
	fixture_free(CUF_KIND_DEVICE, 0x10000);
}

/* Each byte has the same chance: the sampled bytes, weighted, are the bytes. */
static void test_framework__small_blocks_stacks_are_a_sample_and_large_ones_all(void **state)
{
	const uint64_t bytes = 64 << 10, count = 20000,
		       mean = cuf_recording.header->framework_sample_mean_bytes;
	uint64_t sampled = 0;
	double expected = (double)count * 0.3935; /* 1 - exp(-1/2) */
	assert_int_equal(mean, 128 << 10);
	for (uint64_t i = 0; i < count; i++) {
		report(0x7f0000000000, (int64_t)bytes);
		if (last_event()->flags & CUF_EVENT_SAMPLED) {
			assert_int_not_equal(last_event()->stack, 0);
			sampled++;
		} else {
			assert_int_equal(last_event()->stack, 0);
		}
		report(0x7f0000000000, -(int64_t)bytes);
	}
	assert_true(sampled > expected * 0.95 && sampled < expected * 1.05);
	report(0x7f0000000000, CUF_FRAMEWORK_EXACT_BYTES);
	assert_int_equal(last_event()->flags & CUF_EVENT_SAMPLED, 0);
	assert_int_not_equal(last_event()->stack, 0);
	report(0x7f0000000000, -(int64_t)CUF_FRAMEWORK_EXACT_BYTES);
}

static void test_framework__an_unknown_free_is_counted_and_a_missed_one_replaced(void **state)
{
	uint64_t unknown = cuf_recording.header->unknown_frees,
		 replaced = cuf_recording.header->replaced;
	report(0x7f1000000000, -512);
	assert_int_equal(cuf_recording.header->unknown_frees, unknown + 1);
	assert_int_equal(last_event()->op, CUF_OP_UNKNOWN_FREE);
	assert_int_equal(last_event()->bytes, 512);
	report(0x7f0000000000, 512);
	report(0x7f0000000000, 1024);
	assert_int_equal(cuf_recording.header->replaced, replaced + 1);
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_FRAMEWORK], 1024);
	report(0x7f0000000000, -1024);
}

static void test_framework__gives_up_after_a_ladder(void **state)
{
	uint64_t first;
	report(0x7f0000000000, 512);
	fixture_fail(22 << 20);
	first = last()->number;
	fixture_fail(22 << 20);
	give_up(21 << 20);
	assert_int_equal(last()->kind, CUF_KIND_FRAMEWORK);
	assert_int_equal(last()->requested_bytes, 21 << 20);
	assert_int_equal(last()->first, first);
	assert_int_equal(last()->attempt, 2);
	assert_int_equal(last()->result, 2);
	assert_int_equal(last()->framework_allocated_bytes, level.allocated_bytes);
	assert_int_equal(last()->framework_reserved_bytes, level.reserved_bytes);
	assert_ptr_equal(cuf_incident_unresolved(), last());
	report(0x7f0000000000, -512);
}

/* Chunks of an expandable segment: the first try looked recovered when the second one's chunks
 * came. */
static void test_framework__chunks_that_came_meanwhile_are_no_recovery(void **state)
{
	uint64_t first;
	report(0x7f0000000000, 512);
	fixture_fail(20 << 20);
	first = last()->number;
	fixture_alloc(CUF_KIND_DEVICE, 0x20000000, 20 << 20);
	assert_int_equal(last()->outcome, 1);
	fixture_free(CUF_KIND_DEVICE, 0x20000000);
	fixture_fail(20 << 20);
	assert_int_equal(last()->first, first + 1);
	give_up(100 << 20);
	assert_int_equal(last()->first, first);
	assert_int_equal(last()->attempt, 2);
	assert_int_equal(incident(first)->outcome, 0);
	assert_int_equal(incident(first)->resolved_seq, 0);
	assert_int_equal(incident(first + 1)->attempt, 1);
	report(0x7f0000000000, -512);
}

static void test_framework__gives_up_alone_under_a_cap(void **state)
{
	fixture_fail(4 << 20);
	report(0x7f0000000000, 512); /* that one was another block's */
	give_up(64 << 20);
	assert_int_equal(last()->first, last()->number);
	assert_int_equal(last()->attempt, 0);
	assert_int_equal(last()->result, 0);
	report(0x7f0000000000, -512);
	report(0x7f2000000000, 64 << 20); /* the program frees something and retries */
	assert_int_equal(last()->outcome, 1);
	report(0x7f2000000000, -(64 << 20));
}

static void test_framework__is_on_the_timeline(void **state)
{
	const struct cuf_sample *s;
	report(0x7f0000000000, 7 << 20);
	cuf_timeline_sample(cuf_recording.header->start_ns + 1);
	s = &cuf_recording.samples[cuf_recording.header->sample_count - 1];
	assert_int_equal(s->framework_live_bytes[0], level.allocated_bytes);
	assert_int_equal(s->framework_live_bytes[1], CUF_UNKNOWN);
	report(0x7f0000000000, -(7 << 20));
}

static void test_framework__a_role_is_of_the_block_and_in_the_ring(void **state)
{
	struct cuf_block block;
	unsigned before = cuf_role_exchange(CUF_ROLE_COMMUNICATION);
	assert_int_equal(before, CUF_ROLE_NONE);
	fixture_alloc(CUF_KIND_DEVICE, 0x30000, 8192);
	assert_int_equal(cuf_role_exchange(before), CUF_ROLE_COMMUNICATION);
	assert_true(cuf_block_find(CUF_SPACE_DEVICE, 0x30000, 0, &block));
	assert_int_equal(block.role, CUF_ROLE_COMMUNICATION);
	assert_int_equal(last_event()->op, CUF_OP_ROLE);
	assert_int_equal(last_event()->addr, 0x30000);
	assert_int_equal(last_event()->extra, CUF_ROLE_COMMUNICATION);
	cuf_role_assign(0x30000, 8192, CUF_ROLE_WEIGHTS, 413, __builtin_frame_address(0));
	assert_true(cuf_block_find(CUF_SPACE_DEVICE, 0x30000, 0, &block));
	assert_int_equal(block.role, CUF_ROLE_WEIGHTS);
	cuf_role_assign(0x555500001000, 4096, CUF_ROLE_COMPUTE, 413, __builtin_frame_address(0));
	assert_int_equal(last_event()->kind, CUF_KIND_HOST);
	assert_int_equal(last_event()->bytes, 4096);
	fixture_alloc(CUF_KIND_DEVICE, 0x40000, 8192);
	assert_int_equal(last_event()->addr, 0x555500001000); /* no role, no event */
	fixture_free(CUF_KIND_DEVICE, 0x30000);
	fixture_free(CUF_KIND_DEVICE, 0x40000);
}

enum { THREADS = 4, PAIRS = 20000 };

/* As PyTorch reports: one thread a device at a time, devices at once. */
static void *report_on_a_device(void *argument)
{
	uint8_t device = (uint8_t)(uintptr_t)argument;
	uint64_t base = 0x7e0000000000 + ((uint64_t)device << 32);
	for (unsigned i = 0; i < PAIRS; i++) {
		const struct cuf_report came = {
			base + i % 512 * 4096, 4096, 4096, 2 << 20, device, HOOK, CUF_REPORT_BLOCK
		};
		struct cuf_report went = came;
		cuf_framework_report(&came, __builtin_frame_address(0));
		went.bytes = -4096;
		went.allocated_bytes = 0;
		cuf_framework_report(&went, __builtin_frame_address(0));
	}
	return NULL;
}

static void test_framework__devices_at_once_keep_their_totals(void **state)
{
	pthread_t threads[THREADS];
	uint64_t events = cuf_recording.header->framework_events,
		 unknown = cuf_recording.header->unknown_frees;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, report_on_a_device, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(cuf_recording.header->framework_events - events, 2 * THREADS * PAIRS);
	assert_int_equal(cuf_recording.header->unknown_frees, unknown);
	for (unsigned i = 1; i <= THREADS; i++) {
		assert_int_equal(cuf_recording.devices[i].live_bytes[CUF_KIND_FRAMEWORK], 0);
		assert_int_equal(cuf_recording.devices[i].live_count[CUF_KIND_FRAMEWORK], 0);
		assert_int_equal(cuf_framework_level(i).allocated_bytes, 0);
		assert_int_equal(cuf_framework_level(i).reserved_bytes, 2 << 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_framework__a_block_is_in_ring_ledger_and_totals_and_no_device_memory),
		cmocka_unit_test(test_framework__its_events_overwrite_none_of_the_drivers),
		cmocka_unit_test(
			test_framework__small_blocks_stacks_are_a_sample_and_large_ones_all),
		cmocka_unit_test(
			test_framework__an_unknown_free_is_counted_and_a_missed_one_replaced),
		cmocka_unit_test(test_framework__gives_up_after_a_ladder),
		cmocka_unit_test(test_framework__chunks_that_came_meanwhile_are_no_recovery),
		cmocka_unit_test(test_framework__gives_up_alone_under_a_cap),
		cmocka_unit_test(test_framework__is_on_the_timeline),
		cmocka_unit_test(test_framework__devices_at_once_keep_their_totals),
		cmocka_unit_test(test_framework__a_role_is_of_the_block_and_in_the_ring),
	};
	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("framework", tests, NULL, NULL);
}
