/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rule by which a failed request is called fatal, recovered, handled or unknown, and which
 * attempts form one ladder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "analysis/facts/kinds.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)

static struct maker *begin(void)
{
	struct maker *m = maker_new(&maker_small);
	maker_device(m, 0, TOTAL);
	maker_meta(m, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(m, CUF_META_HOOK, 200, "cudaMalloc");
	for (uint32_t id = 1; id < 9; id++)
		maker_stack(m, id, 0x401000 + id * 256, 2);
	maker_alloc(m, 0x700000000000, 8 * GiB, 1);
	return m;
}

static struct facts *report(struct maker *m)
{
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static void expect(struct maker *m, size_t ladders, enum fact_outcome outcome)
{
	struct facts *facts = report(m);
	const struct fact_incident *last = &facts->incidents[facts->incident_count - 1];
	assert_int_equal(facts->incident_count, ladders);
	assert_string_equal(outcome_names[last->outcome], outcome_names[outcome]);
	assert_true(strlen(last->outcome_why) > 10);
	assert_int_equal(facts->fatal_incident, outcome == OUTCOME_FATAL ? last->id : 0);
	facts_free(facts);
	maker_free_all(m);
}

static void many_small_blocks(struct maker *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		maker_alloc(m, 0x710000000000 + i * 4096, 4096, 3);
}

static void test_incident__fatal_exit_with_a_failure(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_alloc(m, 0x701000000000, 1 * MiB, 3); /* unwinding may still allocate a little */
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__fatal_abort(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_ABORT, 6);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__fatal_fast_exit(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_FAST, 3);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__fatal_killed_at_once(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	m->now_ns += 1000000000;
	maker_sample(m);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__unknown_killed_much_later(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	m->now_ns += 60000000000;
	maker_sample(m);
	expect(m, 1, OUTCOME_UNKNOWN);
}

static void test_incident__handled_killed_much_later_after_work(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_alloc(m, 0x701000000000, 1 * MiB, 3);
	m->now_ns += 60000000000;
	maker_sample(m);
	expect(m, 1, OUTCOME_HANDLED);
}

static void test_incident__recovered_by_a_retry(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_free(m, 0x700000000000);
	maker_alloc(m, 0x701000000000, 9 * GiB, 2);
	maker_end(m, CUF_END_EXIT, 1); /* even if it dies of something else */
	expect(m, 1, OUTCOME_RECOVERED);
}

static void test_incident__recovered_as_the_recorder_saw_it(void **state)
{
	static const struct maker_plan plan = { 8, 1024, 4, 1024, 4096, 64, 64, 8, 8, 0, 0 };
	struct maker *m = maker_new(&plan);
	struct cuf_incident *i;
	maker_device(m, 0, TOTAL);
	i = maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	i->outcome = 1;
	i->resolved_seq = 2;
	many_small_blocks(m, 2000); /* the retry has left the ring */
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_RECOVERED);
}

/* Another thread is served as much, and does more than a little, while the one that failed brings
 * the process down. */
static void work_of_another_thread(struct maker *m)
{
	m->thread = 1;
	maker_free(m, 0x700000000000);
	maker_alloc(m, 0x701000000000, 9 * GiB, 2);
	many_small_blocks(m, 200);
	m->thread = 0;
}

static void test_incident__another_threads_success_saves_nobody(void **state)
{
	static const unsigned ends[] = { CUF_END_EXIT, CUF_END_ABORT, CUF_END_FAST };
	for (unsigned i = 0; i < 3; i++) {
		struct maker *m = begin();
		maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
		work_of_another_thread(m);
		maker_end(m, ends[i], 1);
		expect(m, 1, OUTCOME_FATAL);
	}
}

/* The recorder wrote that the program went on; its events say that it was another thread, for a
 * moment. */
static void test_incident__the_events_outweigh_the_recorder(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2)->outcome = 2;
	work_of_another_thread(m);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__handled_where_others_work_on_for_long(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	m->now_ns += 6000000000;
	work_of_another_thread(m);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_HANDLED);
}

/* It fails, its thread gets as much after a while, and dies of something else. */
static void test_incident__handled_where_the_thread_is_served_later(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	m->now_ns += 3000000000;
	maker_free(m, 0x700000000000);
	maker_alloc(m, 0x701000000000, 9 * GiB, 2);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_HANDLED);
}

/* Killed from outside in the midst of its other threads' work: the failure did not stop it. */
static void test_incident__a_busy_process_that_is_killed_is_no_victim(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	work_of_another_thread(m);
	maker_sample(m);
	expect(m, 1, OUTCOME_HANDLED);
}

static void test_incident__another_devices_success_does_not_count(void **state)
{
	struct maker *m = begin();
	maker_device(m, 1, TOTAL);
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_born(m, CUF_KIND_DEVICE, 1, 0x708000000000, 9 * GiB, 2, 0, 0);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__handled_exit_0(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_EXIT, 0);
	expect(m, 1, OUTCOME_HANDLED);
}

static void test_incident__handled_program_went_on(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	many_small_blocks(m, 65);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_HANDLED);
}

static void test_incident__exit_handlers_are_not_going_on(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_EXIT, 1);
	many_small_blocks(m, 65);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_incident__handled_by_exec(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_EXEC, 0);
	expect(m, 1, OUTCOME_HANDLED);
}

/* An unsized failure (a launch) is not served by any block, however small. */
static void test_incident__a_launch_is_not_recovered_by_a_block(void **state)
{
	struct maker *m = begin();
	struct cuf_incident *i = maker_fail(m, 0, 0, 1 * MiB, TOTAL, 2);
	struct facts *facts;
	i->is_request = 0;
	maker_alloc(m, 0x701000000000, 4096, 3);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report(m);
	assert_int_equal(facts->incidents[0].requested_bytes, CUF_UNKNOWN);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_CANNOT_TELL);
	facts_free(facts);
	expect(m, 1, OUTCOME_FATAL);
}

/* first: the id of the failure that ended the process. */
/* malloc is refused; then, in so many seconds, so many blocks of a MiB come and go. */
static struct maker *refused_malloc(unsigned seconds, unsigned blocks)
{
	struct maker *m = begin();

	for (unsigned i = 0; i < 64; i++)
		maker_host_alloc(m, 0x20000000 + i * 2 * MiB, 1 * MiB, 2);
	maker_fail_of(m, CUF_KIND_HOST, 0, 9 * MiB, 0, 0, 2)->device = CUF_DEVICE_NONE;
	for (unsigned i = 0; i < seconds; i++) {
		m->now_ns += 1000000000;
		for (unsigned j = i * blocks / seconds; j < (i + 1) * blocks / seconds; j++) {
			maker_host_alloc(m, 0x10000000, 1 * MiB, 3);
			maker_host_free(m, 0x10000000);
		}
	}
	maker_end(m, CUF_END_EXIT, 1);
	return m;
}

static void test_incident__to_unwind_for_long_is_not_going_on(void **state)
{
	expect(refused_malloc(13, 4), 1, OUTCOME_FATAL);
}

static void test_incident__handled_where_the_host_worked_on(void **state)
{
	expect(refused_malloc(13, 26), 1, OUTCOME_HANDLED);
}

static void test_incident__work_just_before_the_end_is_that_of_the_failure(void **state)
{
	expect(refused_malloc(4, 26), 1, OUTCOME_FATAL);
}

static void test_incident__handled_where_the_host_waited_for_minutes(void **state)
{
	expect(refused_malloc(100, 0), 1, OUTCOME_HANDLED);
}

static void expect_first(struct maker *m, size_t incidents, uint64_t first)
{
	struct facts *facts;

	maker_end(m, CUF_END_EXIT, 1);
	facts = report(m);
	assert_int_equal(facts->incident_count, incidents);
	assert_int_equal(facts->fatal_incident, first);
	assert_int_equal(facts->processes[0].fatal_incident, first);
	facts_free(facts);
	maker_free_all(m);
}

/* Later threads fail while earlier ones unwind, so the first one saw what filled the memory. */
static void test_incident__of_threads_that_fail_together_the_first_is_fatal(void **state)
{
	struct maker *m = begin();
	for (m->thread = 0; m->thread < 4; m->thread++, m->now_ns += 100000000)
		maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	expect_first(m, 4, 1);
}

static void test_incident__a_thread_that_fails_again_had_survived(void **state)
{
	struct maker *m = begin();
	for (unsigned n = 0; n < 4; n++, m->now_ns += 100000000) {
		m->thread = n % 3;
		maker_fail(m, 0, (20 + n) * GiB, 8 * GiB, TOTAL, 2);
	}
	expect_first(m, 4, 2);
}

static void test_incident__a_pause_parts_threads_that_fail(void **state)
{
	struct maker *m = begin();
	for (m->thread = 0; m->thread < 4; m->thread++, m->now_ns += 3000000000)
		maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	expect_first(m, 4, 4);
}

static void test_ladder__tries_of_one_size_are_one(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t first = 0;
	for (unsigned n = 0; n < 3; n++) {
		struct cuf_incident *i = maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
		first = first ? first : i->number;
		i->first = first;
		i->attempt = n;
	}
	maker_end(m, CUF_END_ABORT, 6);
	facts = report(m);
	assert_int_equal(facts->incident_count, 1);
	assert_int_equal(facts->incidents[0].attempt_count, 3);
	assert_int_equal(facts->incidents[0].attempts[2].number, 3);
	assert_string_equal(facts->incidents[0].api, "cudaMalloc");
	assert_string_equal(facts->incidents[0].driver_api, "cuMemAlloc_v2");
	assert_int_equal(facts->incidents[0].stack.id, 2);
	assert_int_equal(facts->incidents[0].stack.depth, 2);
	assert_int_equal(facts->incidents[0].stack.addrs[1], 0x401210);
	facts_free(facts);
	maker_free_all(m);
}

/* A caching allocator asks for less each time (0.9 of it) and is content with what it gets. */
static void test_ladder__shrinking_tries_are_one_and_recovered(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t bytes = 10 * GiB;
	for (unsigned n = 0; n < 4; n++, bytes = bytes / 10 * 9)
		maker_fail(m, 0, bytes, 6 * GiB, TOTAL, 2);
	maker_alloc(m, 0x701000000000, bytes, 2);
	maker_end(m, CUF_END_EXIT, 0);
	facts = report(m);
	assert_int_equal(facts->incident_count, 1);
	assert_int_equal(facts->incidents[0].attempt_count, 4);
	assert_int_equal(facts->incidents[0].requested_bytes, 10 * GiB);
	assert_int_equal(facts->incidents[0].outcome, OUTCOME_RECOVERED);
	assert_true(facts->incidents[0].resolved_ns > facts->incidents[0].time_ns);
	facts_free(facts);
	maker_free_all(m);
}

/* XLA's arena as seen: refused once, content with nine tenths, rounded to pages of 2 MiB. */
static void test_ladder__nine_tenths_serve(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 8 * GiB, 8 * GiB - 1, TOTAL, 2);
	maker_alloc(m, 0x701000000000, 7732199424, 2);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_RECOVERED);
}

static void test_ladder__less_than_nine_tenths_serves_nobody(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 8 * GiB, 8 * GiB - 1, TOTAL, 2);
	maker_alloc(m, 0x701000000000, 7 * GiB, 2);
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_FATAL);
}

/* It comes down in vain, waits for ten seconds and starts over: one request. */
static void test_ladder__starting_over_is_the_same_request(void **state)
{
	struct maker *m = begin();
	for (unsigned round = 0; round < 2; round++, m->now_ns += 10000000000) {
		uint64_t bytes = 10 * GiB;
		for (unsigned n = 0; n < 4; n++, bytes = bytes / 10 * 9)
			maker_fail(m, 0, bytes, 1 * GiB, TOTAL, 2);
	}
	maker_end(m, CUF_END_EXIT, 1);
	expect(m, 1, OUTCOME_FATAL);
}

static void test_ladder__threads_and_pauses_part_them(void **state)
{
	struct maker *m = begin();
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	m->thread = 1;
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 3);
	m->now_ns += 10000000000;
	maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 3);
	maker_end(m, CUF_END_EXIT, 0);
	expect(m, 3, OUTCOME_HANDLED);
}

/* More incidents than slots: the first ones and the last ones are there, in order. */
static void test_ladder__overwritten_incidents(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t slots = m->size[CUF_SEC_INCIDENTS] / sizeof(struct cuf_incident), keep = slots / 4;
	for (unsigned n = 0; n < 100; n++) {
		m->now_ns += 10000000000;
		maker_fail(m, 0, 9 * GiB, 8 * GiB, TOTAL, 2);
	}
	maker_end(m, CUF_END_EXIT, 1);
	facts = report(m);
	assert_true(slots < 100);
	assert_int_equal(facts->incident_count, slots);
	assert_int_equal(facts->incidents[0].attempts[0].number, 1);
	assert_int_equal(facts->incidents[keep - 1].attempts[0].number, keep);
	assert_int_equal(facts->incidents[keep].attempts[0].number, 100 - (slots - keep) + 1);
	assert_int_equal(facts->incidents[slots - 1].attempts[0].number, 100);
	assert_int_equal(facts->fatal_incident, slots);
	facts_free(facts);
	maker_free_all(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incident__fatal_exit_with_a_failure),
		cmocka_unit_test(test_incident__fatal_abort),
		cmocka_unit_test(test_incident__fatal_fast_exit),
		cmocka_unit_test(test_incident__fatal_killed_at_once),
		cmocka_unit_test(test_incident__unknown_killed_much_later),
		cmocka_unit_test(test_incident__handled_killed_much_later_after_work),
		cmocka_unit_test(test_incident__recovered_by_a_retry),
		cmocka_unit_test(test_incident__recovered_as_the_recorder_saw_it),
		cmocka_unit_test(test_incident__another_threads_success_saves_nobody),
		cmocka_unit_test(test_incident__the_events_outweigh_the_recorder),
		cmocka_unit_test(test_incident__handled_where_others_work_on_for_long),
		cmocka_unit_test(test_incident__handled_where_the_thread_is_served_later),
		cmocka_unit_test(test_incident__a_busy_process_that_is_killed_is_no_victim),
		cmocka_unit_test(test_incident__another_devices_success_does_not_count),
		cmocka_unit_test(test_incident__handled_exit_0),
		cmocka_unit_test(test_incident__handled_program_went_on),
		cmocka_unit_test(test_incident__exit_handlers_are_not_going_on),
		cmocka_unit_test(test_incident__handled_by_exec),
		cmocka_unit_test(test_incident__a_launch_is_not_recovered_by_a_block),
		cmocka_unit_test(test_incident__to_unwind_for_long_is_not_going_on),
		cmocka_unit_test(test_incident__handled_where_the_host_worked_on),
		cmocka_unit_test(
			test_incident__work_just_before_the_end_is_that_of_the_failure),
		cmocka_unit_test(test_incident__handled_where_the_host_waited_for_minutes),
		cmocka_unit_test(
			test_incident__of_threads_that_fail_together_the_first_is_fatal),
		cmocka_unit_test(test_incident__a_thread_that_fails_again_had_survived),
		cmocka_unit_test(test_incident__a_pause_parts_threads_that_fail),
		cmocka_unit_test(test_ladder__tries_of_one_size_are_one),
		cmocka_unit_test(test_ladder__shrinking_tries_are_one_and_recovered),
		cmocka_unit_test(test_ladder__nine_tenths_serve),
		cmocka_unit_test(test_ladder__less_than_nine_tenths_serves_nobody),
		cmocka_unit_test(test_ladder__starting_over_is_the_same_request),
		cmocka_unit_test(test_ladder__threads_and_pauses_part_them),
		cmocka_unit_test(test_ladder__overwritten_incidents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
