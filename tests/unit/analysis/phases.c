/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of a program's own words on its work, and what is inferred where it says nothing - and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/model/phases.h"
#include "tests/unit/analysis/recording_maker.h"

#define TOTAL (80 * GiB)
#define WEIGHTS 0x700000000000ull
#define CACHE 0x710000000000ull
#define WORK 0x720000000000ull

enum { NAME_OUTER = 1, NAME_INNER, NAME_REQUEST, NAME_MARK, NAME_RANGE };
enum { HOOK_INFO = 150 };

static struct maker *begin(void)
{
	static const struct maker_plan plan = { 512, 4096, 16, 4096, 4096, 4096, 256, 64, 32, 512, 4096 };
	struct maker *m = maker_new(&plan);
	maker_device(m, 0, TOTAL);
	maker_meta(m, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(m, CUF_META_HOOK, HOOK_INFO, "cuMemGetInfo_v2");
	maker_meta(m, CUF_META_PHASE, NAME_OUTER, "outer");
	maker_meta(m, CUF_META_PHASE, NAME_INNER, "inner");
	maker_meta(m, CUF_META_PHASE, NAME_REQUEST, "generate");
	maker_meta(m, CUF_META_PHASE, NAME_MARK, "moment");
	maker_meta(m, CUF_META_PHASE, NAME_RANGE, "range");
	for (uint32_t id = 1; id < 9; id++)
		maker_stack(m, id, 0x401000 + id * 256, 2);
	return m;
}

static void say(struct maker *m, unsigned op, uint64_t name, uint64_t id)
{
	maker_event(m, (struct cuf_event){ .op = CUF_OP_PHASE, .addr = name, .aux = id, .extra = cuf_phase_extra(op, CUF_PHASE_PROGRAM), .device = CUF_DEVICE_NONE });
}

static void say_nvtx(struct maker *m, unsigned op, uint64_t name, uint64_t id)
{
	maker_event_in(m, MAKER_FRAMEWORK, (struct cuf_event){ .op = CUF_OP_PHASE, .addr = name, .aux = id, .extra = cuf_phase_extra(op, CUF_PHASE_NVTX),
		.device = CUF_DEVICE_NONE });
}

static struct facts *report(struct maker *m)
{
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static const struct fact_phase *find(const struct facts *facts, const char *name)
{
	const struct fact_process *p = &facts->processes[0];
	for (size_t i = 0; i < p->phase_count; i++)
		if (!strcmp(p->phases[i].name, name))
			return &p->phases[i];
	return NULL;
}

static const struct fact_phase_group *group(const struct facts *facts, const char *name)
{
	const struct fact_process *p = &facts->processes[0];
	for (size_t i = 0; i < p->phase_group_count; i++)
		if (!strcmp(p->phase_groups[i].name, name))
			return &p->phase_groups[i];
	return NULL;
}

static void done(struct maker *m, struct facts *facts)
{
	facts_free(facts);
	maker_free_all(m);
}

/* ---- what was said ---- */

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
	/* the other thread's phase is its own; a thread without one gets the process's first thread's, here nothing */
	assert_ptr_equal(phase_at(facts, 0, 1000, inner->begin_ns), inner);
	assert_int_equal(phase_at(facts, 0, 1001, inner->end_ns)->tid, 1001);
	assert_null(phase_at(facts, 0, 1002, inner->begin_ns));
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
			assert_int_equal(f->end_ns == FACT_UNKNOWN, f->source == PHASE_NVTX);
	}
	/* a range is of the whole process: any thread is in it, the last begun first */
	assert_int_equal(phase_at(facts, 0, 1005, find(facts, "moment")->begin_ns)->source, PHASE_NVTX);
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
	struct cycle_mark *marks;
	size_t count;
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
	assert_true(r->floor_low_bytes <= r->floor_slope_bytes && r->floor_slope_bytes <= r->floor_high_bytes);
	facts_free(facts);
	struct reader *reader;
	assert_int_equal(reader_open_memory(m->data, m->bytes, &reader, NULL), 0);
	struct events *events = events_new(reader);
	assert_int_equal(phases_quiet_marks(events, &marks, &count), 30);
	assert_int_equal(count, 31); /* before the first, and after each */
	assert_true(marks[0].position < marks[1].position);
	free(marks);
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

/* The cache of a request that waits in the middle of another's floor: a request's own blocks are no floor. */
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
	struct cuf_incident *known = maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1); /* the events are gone, the recorder knew */
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
	assert_int_equal(facts->incidents[2].request_id, FACT_UNKNOWN);
	done(m, facts);
}

/* ---- what is inferred ---- */

static void load(struct maker *m)
{
	for (unsigned i = 0; i < 12; i++)
		maker_alloc(m, WEIGHTS + i * GiB, (100 + 7 * i) * MiB, 1);
}

static void ask(struct maker *m, unsigned hook)
{
	maker_event(m, (struct cuf_event){ .op = CUF_OP_FREE_MEMORY, .bytes = GiB, .aux = TOTAL, .hook = (uint16_t)hook });
}

static void profile(struct maker *m)
{
	for (unsigned i = 0; i < 6; i++)
		maker_alloc(m, WORK + i * GiB, (50 + i) * MiB, 2);
	for (unsigned i = 0; i < 6; i++)
		maker_free(m, WORK + i * GiB);
	ask(m, HOOK_INFO);
}

static void make_cache(struct maker *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		maker_alloc(m, CACHE + i * GiB, 256 * MiB, 3);
}

static void capture(struct maker *m)
{
	for (unsigned i = 0; i < 3; i++) {
		maker_event(m, (struct cuf_event){ .op = CUF_OP_CAPTURE, .extra = 1, .addr = 1 });
		maker_event(m, (struct cuf_event){ .op = CUF_OP_CAPTURE, .extra = 0, .addr = 1 });
	}
}

static void work(struct maker *m, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		maker_alloc(m, WORK, (20 + i % 4) * MiB, 4);
		maker_alloc(m, WORK + GiB, 3 * MiB, 4);
		maker_free(m, WORK);
		maker_free(m, WORK + GiB);
	}
}

static void expect_phases(struct maker *m, const char *const *names)
{
	struct facts *facts = report(m);
	const struct fact_process *p = &facts->processes[0];
	for (size_t i = 0; i < p->phase_count; i++) {
		assert_non_null(names[i]);
		assert_string_equal(p->phases[i].name, names[i]);
		assert_true(strlen(p->phases[i].why) > 10);
		assert_int_equal(p->phases[i].source, PHASE_INFERRED);
		assert_true(!i || p->phases[i - 1].end_ns <= p->phases[i].begin_ns);
		assert_ptr_equal(phase_at(facts, 0, 1000, p->phases[i].end_ns), &p->phases[i]);
	}
	assert_null(names[p->phase_count]);
	done(m, facts);
}
#define NAMES(...) (const char *const[]){ __VA_ARGS__, NULL }
#define NONE (const char *const[]){ NULL }

static void test_inferred__a_server_from_start_to_work(void **state)
{
	struct maker *m = begin();
	load(m);
	profile(m);
	make_cache(m, 24);
	capture(m);
	work(m, 30);
	expect_phases(m, NAMES("load", "profile", "kv-init", "graph capture", "serving"));
}

static void test_inferred__bytes_of_the_phases(void **state)
{
	struct maker *m = begin();
	load(m);
	profile(m);
	make_cache(m, 24);
	work(m, 30);
	struct facts *facts = report(m);
	uint64_t weights = 12 * 100 * MiB + 7 * 66 * MiB;
	assert_int_equal(find(facts, "load")->work.end_bytes, weights);
	assert_int_equal(find(facts, "load")->work.start_bytes, 0);
	assert_int_equal(find(facts, "profile")->work.peak_bytes, weights + 315 * MiB);
	assert_int_equal(find(facts, "kv-init")->work.end_bytes, weights + 24 * 256 * MiB);
	assert_int_equal(find(facts, "serving")->work.peak_bytes, weights + 24 * 256 * MiB + 26 * MiB);
	done(m, facts);
}

static void test_inferred__blocks_labelled_kv(void **state)
{
	struct maker *m = begin();
	load(m);
	maker_alloc(m, CACHE, 3 * GiB, 3);
	maker_event(m, (struct cuf_event){ .op = CUF_OP_ROLE, .addr = CACHE, .kind = CUF_KIND_DEVICE, .extra = CUF_ROLE_KV });
	work(m, 12);
	expect_phases(m, NAMES("load", "kv-init", "serving"));
}

/* A framework keeps the segments that its first requests made it take. */
static void test_inferred__warm_up_of_a_framework(void **state)
{
	struct maker *m = begin();
	load(m);
	for (unsigned i = 0; i < 12; i++)
		maker_block(m, 0, WEIGHTS + i * GiB, (100 + 7 * i) * MiB, 5);
	for (unsigned i = 0; i < 60; i++) {
		if (i < 8)
			maker_alloc(m, WORK + i * GiB, 20 * MiB, 1);
		maker_block(m, 0, WORK, 40 * MiB, 6);
		maker_block(m, 0, WORK + GiB, 3 * MiB, 6);
		maker_block_freed(m, WORK + GiB);
		maker_block_freed(m, WORK);
	}
	struct facts *facts = report(m);
	const struct fact_phase *warm_up = find(facts, "warm-up"), *serving = find(facts, "serving");
	assert_non_null(find(facts, "load"));
	assert_non_null(warm_up);
	assert_non_null(serving);
	assert_true(warm_up->end_ns <= serving->begin_ns);
	assert_true(find(facts, "load")->end_ns <= warm_up->begin_ns);
	assert_in_range(facts->processes[0].requests.count, 58, 62);
	assert_int_equal(facts->processes[0].requests.median_peak_bytes, 43 * MiB);
	done(m, facts);
}

/* Every tensor is loaded wide and kept narrow: what is load and what is work cannot be told. */
static void test_inferred__no_load_of_a_framework_that_converts(void **state)
{
	struct maker *m = begin();
	load(m);
	for (unsigned i = 0; i < 12; i++) {
		maker_block(m, 0, WORK, 100 * MiB, 5);
		maker_block(m, 0, WEIGHTS + i * GiB, 50 * MiB, 5);
		maker_block_freed(m, WORK);
	}
	for (unsigned i = 0; i < 30; i++) {
		maker_block(m, 0, WORK, 40 * MiB, 6);
		maker_block_freed(m, WORK);
	}
	struct facts *facts = report(m);
	assert_null(find(facts, "load"));
	assert_null(find(facts, "warm-up"));
	done(m, facts);
}

static void test_inferred__a_cache_that_does_not_fit(void **state)
{
	struct maker *m = begin();
	load(m);
	make_cache(m, 10);
	maker_fail(m, 0, 256 * MiB, 100 * MiB, TOTAL, 3);
	maker_end(m, CUF_END_EXIT, 1);
	struct facts *facts = report(m);
	assert_string_equal(facts->incidents[0].phase, "kv-init");
	assert_int_equal(facts->incidents[0].phase_basis, BASIS_INFERRED);
	assert_non_null(strstr(find(facts, "kv-init")->why, "10 blocks"));
	assert_non_null(find(facts, "load"));
	done(m, facts);
}

static void test_inferred__rows_that_repeat_are_layers(void **state)
{
	struct maker *m = begin();
	for (unsigned layer = 0; layer < 8; layer++) {
		for (unsigned i = 0; i < 4; i++) /* q, k, v, o of multi-head attention */
			maker_alloc(m, WEIGHTS + (layer * 8 + i) * GiB, 128 * MiB, 1);
		maker_alloc(m, WEIGHTS + (layer * 8 + 5) * GiB, 344 * MiB, 1);
	}
	work(m, 12);
	expect_phases(m, NAMES("load", "serving"));
}

static void test_inferred__nothing_of_programs_that_fit_no_rule(void **state)
{
	struct maker *m = begin();
	load(m); /* allocates, and that is all */
	expect_phases(m, NONE);
	m = begin();
	load(m);
	maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1);
	maker_end(m, CUF_END_EXIT, 1);
	expect_phases(m, NONE);
	m = begin();
	work(m, 40); /* works, with nothing behind it that stays */
	expect_phases(m, NONE);
	m = begin();
	make_cache(m, 12); /* equal blocks, and no load before them */
	expect_phases(m, NONE);
	m = begin();
	expect_phases(m, NONE);
}

static void test_inferred__no_profile_after_a_failure_or_without_the_question(void **state)
{
	struct maker *m = begin();
	load(m);
	for (unsigned i = 0; i < 6; i++)
		maker_alloc(m, WORK + i * GiB, 50 * MiB, 2);
	maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1); /* a cache dropped for want of memory */
	for (unsigned i = 0; i < 6; i++)
		maker_free(m, WORK + i * GiB);
	ask(m, HOOK_INFO);
	capture(m);
	expect_phases(m, NAMES("load", "graph capture"));
	m = begin();
	load(m);
	for (unsigned i = 0; i < 6; i++)
		maker_alloc(m, WORK + i * GiB, 50 * MiB, 2);
	for (unsigned i = 0; i < 6; i++)
		maker_free(m, WORK + i * GiB);
	ask(m, 100); /* our own question */
	capture(m);
	expect_phases(m, NAMES("load", "graph capture"));
}

static void test_inferred__no_start_where_it_left_the_ring(void **state)
{
	struct maker *m = begin();
	load(m);
	make_cache(m, 24);
	work(m, 10000);
	assert_true(m->h->overwritten > 0);
	expect_phases(m, NAMES("serving"));
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
		cmocka_unit_test(test_inferred__a_server_from_start_to_work),
		cmocka_unit_test(test_inferred__bytes_of_the_phases),
		cmocka_unit_test(test_inferred__blocks_labelled_kv),
		cmocka_unit_test(test_inferred__warm_up_of_a_framework),
		cmocka_unit_test(test_inferred__no_load_of_a_framework_that_converts),
		cmocka_unit_test(test_inferred__a_cache_that_does_not_fit),
		cmocka_unit_test(test_inferred__rows_that_repeat_are_layers),
		cmocka_unit_test(test_inferred__nothing_of_programs_that_fit_no_rule),
		cmocka_unit_test(test_inferred__no_profile_after_a_failure_or_without_the_question),
		cmocka_unit_test(test_inferred__no_start_where_it_left_the_ring),
	};
	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
