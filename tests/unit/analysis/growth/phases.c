/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the analysis computes from a program's marks: phases, requests, leaks between them, and the
 * phase of an incident.
 */
#include "tests/unit/fixtures/phase_recording.h"

#include <math.h>

static const struct fact_phase_group *group(const struct facts *facts, const char *name)
{
	const struct fact_process *p = &facts->processes[0];
	for (size_t i = 0; i < p->phase_group_count; i++)
		if (!strcmp(p->phase_groups[i].name, name))
			return &p->phase_groups[i];
	return NULL;
}

/* ---- what the program marked ---- */

static void test_phases__nest_in_their_thread_with_their_bytes(void **state)
{
	struct maker *m = begin();
	maker_alloc(m, WEIGHTS, 10 * MiB, 1);
	say(m, CUF_PHASE_PUSH, NAME_OUTER, 0);
	maker_alloc(m, WORK, 5 * MiB, 1);
	say_nvtx(m, CUF_PHASE_PUSH, NAME_INNER, 0);
	m->thread = 1;
	say_nvtx(m, CUF_PHASE_PUSH, NAME_INNER, 0); /* of another thread: nests in nothing */
	m->thread = 0;
	maker_alloc(m, WORK + GiB, 7 * MiB, 1);
	maker_free(m, WORK + GiB);
	say_nvtx(m, CUF_PHASE_POP, NAME_INNER, 0);
	maker_free(m, WORK);
	maker_free(m, WEIGHTS);
	say(m, CUF_PHASE_POP, NAME_OUTER, 0);
	struct facts *facts = report(m);
	const struct fact_phase *outer = find(facts, "outer"), *inner = find(facts, "inner");
	assert_int_equal(outer->source, PHASE_MARK);
	assert_int_equal(inner->source, PHASE_NVTX);
	assert_int_equal(outer->depth, 0);
	assert_int_equal(inner->depth, 1);
	assert_int_equal(outer->work.start_bytes, 10 * MiB);
	assert_int_equal(outer->work.peak_bytes, 22 * MiB);
	assert_int_equal(outer->work.floor_bytes, 0);
	assert_int_equal(outer->work.end_bytes, 0);
	assert_int_equal(inner->work.peak_bytes, 22 * MiB);
	assert_int_equal(inner->work.floor_bytes, 15 * MiB);
	assert_true(outer->begin_ns < inner->begin_ns && inner->end_ns < outer->end_ns);
	assert_int_equal(group(facts, "inner")->count, 2);
	assert_int_equal(group(facts, "inner")->open, 1);
	assert_int_equal(facts->processes[0].phase_count, 3);
	/* the other thread's phase is its own; a thread without one gets the process's first
	 * thread's, here nothing */
	assert_ptr_equal(phase_at(&facts->processes[0], 1000, inner->begin_ns), inner);
	assert_int_equal(phase_at(&facts->processes[0], 1001, inner->end_ns)->tid, 1001);
	assert_null(phase_at(&facts->processes[0], 1002, inner->begin_ns));
	done(m, facts);
}

static void test_phases__ranges_and_marks_and_nonsense(void **state)
{
	struct maker *m = begin();
	say(m, CUF_PHASE_POP, NAME_OUTER, 0);          /* ends without beginnings */
	say(m, CUF_PHASE_END, NAME_RANGE, 7);
	say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 7);
	say(m, 99, NAME_OUTER, 7);
	say(m, CUF_PHASE_START, NAME_RANGE, 7);
	say_nvtx(m, CUF_PHASE_START, NAME_RANGE, 7);    /* another tool's 7 */
	m->thread = 1;
	say(m, CUF_PHASE_END, 0, 7);                    /* in another thread, its name lost */
	m->thread = 0;
	say(m, CUF_PHASE_MARK, NAME_MARK, 0);
	say(m, CUF_PHASE_MARK, UINT64_MAX, 0);
	say(m, CUF_PHASE_MARK, 4242, 0);
	struct facts *facts = report(m);
	assert_int_equal(group(facts, "range")->count, 1); /* of each source one */
	assert_int_equal(facts->processes[0].phase_group_count, 4);
	assert_non_null(find(facts, "(name lost)"));
	assert_true(find(facts, "moment")->is_mark);
	assert_int_equal(find(facts, "moment")->begin_ns, find(facts, "moment")->end_ns);
	for (size_t i = 0; i < facts->processes[0].phase_count; i++) {
		const struct fact_phase *f = &facts->processes[0].phases[i];
		if (!strcmp(f->name, "range"))
			assert_int_equal(f->end_ns == CUF_UNKNOWN, f->source == PHASE_NVTX);
	}
	/* a range is of the whole process: any thread is in it, the last begun first */
	assert_int_equal(
		phase_at(&facts->processes[0], 1005, find(facts, "moment")->begin_ns)->source,
		PHASE_NVTX);
	assert_null(find(facts, "outer"));
	assert_int_equal(facts->processes[0].requests.count, 0);
	done(m, facts);
}

static void test_phases__of_each_name_some_are_kept(void **state)
{
	struct maker *m = begin();
	m->step_ns = 1000;
	say(m, CUF_PHASE_MARK, NAME_MARK, 0);
	for (unsigned i = 0; i < 4000; i++) {
		say_nvtx(m, CUF_PHASE_PUSH, NAME_INNER, 0);
		say_nvtx(m, CUF_PHASE_POP, NAME_INNER, 0);
	}
	struct facts *facts = report(m);
	assert_non_null(find(facts, "moment"));
	assert_int_equal(group(facts, "inner")->count, 4000);
	assert_int_equal(facts->processes[0].phases_seen, 4001);
	assert_int_equal(facts->processes[0].phase_count, 2048);
	done(m, facts);
}

/* ---- requests ---- */

static void serve(struct maker *m, unsigned i, uint64_t left)
{
	say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 100 + i);
	maker_alloc(m, WORK, (8 + i % 3) * MiB, 2);
	if (left)
		maker_alloc(m, CACHE + i * GiB, left, 3);
	maker_free(m, WORK);
	say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 100 + i);
}

static void test_requests__peak_and_floor(void **state)
{
	struct maker *m = begin();
	struct sweep_consumer consumer;
	struct units_reading *units;
	struct quiet_marks quiet = { 0 };
	maker_alloc(m, WEIGHTS, GiB, 1);
	for (unsigned i = 0; i < 30; i++)
		serve(m, i, 96 << 10);
	say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 999);
	struct facts *facts = report(m);
	const struct fact_requests *r = &facts->processes[0].requests;
	assert_int_equal(r->count, 30);
	assert_int_equal(r->open, 1);
	assert_string_equal(r->name, "generate");
	assert_int_equal(r->basis, BASIS_OBSERVED);
	assert_int_equal(r->concurrency_max, 1);
	assert_int_equal(r->median_peak_bytes, 9 * MiB + (96 << 10));
	assert_int_equal(r->largest_peak_bytes, 10 * MiB + (96 << 10));
	assert_int_equal(r->largest_id, 102);
	assert_true(fabs(r->floor_slope_bytes - (96 << 10)) < 1);
	assert_true(r->floor_low_bytes <= r->floor_slope_bytes &&
	            r->floor_slope_bytes <= r->floor_high_bytes);
	facts_free(facts);
	struct reader *reader;
	assert_int_equal(reader_open_memory(m->data, m->bytes, &reader, NULL), 0);
	struct events *events = events_new(reader, NULL);
	units = units_begin(&quiet, &consumer);
	sweep_events(events, &consumer, 1);
	assert_int_equal(quiet.requests, 30);
	assert_int_equal(quiet.count, 31); /* before the first, and after each */
	assert_true(quiet.items[0].position < quiet.items[1].position);
	free(quiet.items);
	units_end(units);
	events_free(events);
	reader_close(reader);
	maker_free_all(m);
}

static void test_requests__that_overlap_are_estimates(void **state)
{
	struct maker *m = begin();
	for (unsigned i = 0; i < 10; i++) {
		say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 2 * i);
		m->thread = 1;
		say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 2 * i + 1);
		m->thread = 0;
		maker_alloc(m, WORK, MiB, 2);
		maker_free(m, WORK);
		say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 2 * i); /* id 0 is an id like any */
		say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 2 * i + 1);
	}
	struct facts *facts = report(m);
	assert_int_equal(facts->processes[0].requests.count, 20);
	assert_int_equal(facts->processes[0].requests.concurrency_max, 2);
	assert_int_equal(facts->processes[0].requests.basis, BASIS_ESTIMATED);
	done(m, facts);
}

static void test_requests__unmarked_are_the_cycles(void **state)
{
	struct maker *m = begin();
	maker_alloc(m, WEIGHTS, GiB, 1);
	for (unsigned i = 0; i < 20; i++) {
		maker_alloc(m, WORK, 16 * MiB, 2);
		maker_alloc(m, CACHE + i * GiB, 64 << 10, 3);
		maker_free(m, WORK);
	}
	struct facts *facts = report(m);
	const struct fact_requests *r = &facts->processes[0].requests;
	assert_int_equal(r->basis, BASIS_INFERRED);
	assert_in_range(r->count, 19, 21);
	assert_int_equal(r->largest_peak_bytes, 16 * MiB + (64 << 10)); /* loading is no request */
	assert_int_equal(r->median_peak_bytes, 16 * MiB + (64 << 10));
	assert_true(fabs(r->floor_slope_bytes - (64 << 10)) < 1);
	done(m, facts);
}

static void test_requests__in_a_framework_are_measured_in_its_blocks(void **state)
{
	struct maker *m = begin();
	maker_alloc(m, WEIGHTS, GiB, 1); /* the segment does not change */
	m->reserved[0] = GiB;
	maker_block(m, 0, WEIGHTS, 100 * MiB, 4);
	for (unsigned i = 0; i < 12; i++) {
		say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, i + 1);
		maker_block(m, 0, WEIGHTS + 200 * MiB, 30 * MiB, 5);
		maker_block_freed(m, WEIGHTS + 200 * MiB);
		say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, i + 1);
	}
	struct facts *facts = report(m);
	assert_string_equal(facts->processes[0].work_layer, "framework");
	assert_int_equal(facts->processes[0].requests.median_peak_bytes, 30 * MiB);
	assert_int_equal(find(facts, "generate")->work.start_bytes, 100 * MiB);
	done(m, facts);
}

static const struct fact_site *leak_of(const struct facts *facts)
{
	for (size_t i = 0; i < facts->leak_count; i++)
		if (facts->leaks[i].class == CLASS_LEAK)
			return &facts->leaks[i];
	return NULL;
}

/* Nothing goes up and down: only the program knows where one request ends and the next begins. */
static void test_leak__by_marked_requests_alone(void **state)
{
	for (int said = 0; said < 2; said++) {
		struct maker *m = begin();
		for (unsigned i = 0; i < 40; i++) {
			if (said)
				say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 100 + i);
			maker_alloc(m, CACHE + i * GiB, 64 << 10, 3);
			if (said)
				say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 100 + i);
		}
		struct facts *facts = report(m);
		const struct fact_site *leak = leak_of(facts);
		assert_int_equal(leak != NULL, said);
		if (leak) {
			assert_int_equal(leak->per_request_bytes, 64 << 10);
			assert_int_equal(leak->cycles, 40);
		}
		done(m, facts);
	}
}

/* The cache of a request that waits in the middle of another's floor: a request's own blocks are no
 * floor. */
static void test_leak__what_a_request_holds_until_its_end_is_none(void **state)
{
	struct maker *m = begin();
	for (unsigned i = 0; i < 40; i++) {
		say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 100 + i);
		for (unsigned k = 0; k <= i; k++) /* each longer than the one before */
			maker_alloc(m, CACHE + k * GiB, MiB, 3);
		for (unsigned k = 0; k <= i; k++)
			maker_free(m, CACHE + k * GiB);
		say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 100 + i);
	}
	struct facts *facts = report(m);
	assert_null(leak_of(facts));
	assert_int_equal(facts->processes[0].requests.largest_peak_bytes, 40 * MiB);
	assert_true(fabs(facts->processes[0].requests.floor_slope_bytes) < 1);
	done(m, facts);
}

/* ---- incidents ---- */

static void test_incident__says_its_phase_and_request(void **state)
{
	struct maker *m = begin();
	say(m, CUF_PHASE_PUSH, NAME_OUTER, 0);
	say(m, CUF_PHASE_REQUEST_BEGIN, NAME_REQUEST, 77);
	maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1);
	say(m, CUF_PHASE_REQUEST_END, NAME_REQUEST, 77);
	say(m, CUF_PHASE_POP, NAME_OUTER, 0);
	m->now_ns += 10000000000ull;
	/* the events are gone, the recorder knew */
	struct cuf_incident *known = maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1);
	known->phase = NAME_INNER;
	known->request_phase = NAME_REQUEST;
	known->request_id = 78;
	m->now_ns += 10000000000ull;
	maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1);
	maker_end(m, CUF_END_EXIT, 1);
	struct facts *facts = report(m);
	assert_int_equal(facts->incident_count, 3);
	assert_string_equal(facts->incidents[0].phase, "outer");
	assert_string_equal(facts->incidents[0].request_phase, "generate");
	assert_int_equal(facts->incidents[0].request_id, 77);
	assert_string_equal(facts->incidents[1].phase, "inner");
	assert_int_equal(facts->incidents[1].phase_basis, BASIS_OBSERVED);
	assert_int_equal(facts->incidents[1].request_id, 78);
	assert_null(facts->incidents[2].phase);
	assert_int_equal(facts->incidents[2].request_id, CUF_UNKNOWN);
	done(m, facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_phases__nest_in_their_thread_with_their_bytes),
		cmocka_unit_test(test_phases__ranges_and_marks_and_nonsense),
		cmocka_unit_test(test_phases__of_each_name_some_are_kept),
		cmocka_unit_test(test_requests__peak_and_floor),
		cmocka_unit_test(test_requests__that_overlap_are_estimates),
		cmocka_unit_test(test_requests__unmarked_are_the_cycles),
		cmocka_unit_test(test_requests__in_a_framework_are_measured_in_its_blocks),
		cmocka_unit_test(test_leak__by_marked_requests_alone),
		cmocka_unit_test(test_leak__what_a_request_holds_until_its_end_is_none),
		cmocka_unit_test(test_incident__says_its_phase_and_request),
	};
	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
