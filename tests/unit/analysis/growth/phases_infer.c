/* SPDX-License-Identifier: Apache-2.0 */
/* What is inferred of a program that does not mark its work, and what is not. */
#include "tests/unit/fixtures/phase_recording.h"

/* ---- what is inferred ---- */

static void load(struct maker *m)
{
	for (unsigned i = 0; i < 12; i++)
		maker_alloc(m, WEIGHTS + i * GiB, (100 + 7 * i) * MiB, 1);
}

static void ask(struct maker *m, unsigned hook)
{
	maker_event(m, (struct cuf_event){
		.op = CUF_OP_FREE_MEMORY, .bytes = GiB, .aux = TOTAL, .hook = (uint16_t)hook,
	});
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
		assert_ptr_equal(phase_at(&facts->processes[0], 1000, p->phases[i].end_ns),
		                 &p->phases[i]);
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
	assert_int_equal(find(facts, "serving")->work.peak_bytes,
	                 weights + 24 * 256 * MiB + 26 * MiB);
	done(m, facts);
}

static void test_inferred__blocks_labelled_kv(void **state)
{
	struct maker *m = begin();
	load(m);
	maker_alloc(m, CACHE, 3 * GiB, 3);
	maker_event(m, (struct cuf_event){
		.op = CUF_OP_ROLE, .addr = CACHE, .kind = CUF_KIND_DEVICE, .extra = CUF_ROLE_KV,
	});
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
	const struct fact_phase *warm_up = find(facts, "warm-up"),
				*serving = find(facts, "serving");
	assert_non_null(find(facts, "load"));
	assert_non_null(warm_up);
	assert_non_null(serving);
	assert_true(warm_up->end_ns <= serving->begin_ns);
	assert_true(find(facts, "load")->end_ns <= warm_up->begin_ns);
	assert_in_range(facts->processes[0].requests.count, 58, 62);
	assert_int_equal(facts->processes[0].requests.median_peak_bytes, 43 * MiB);
	done(m, facts);
}

/* Every tensor is loaded wide and kept narrow: load and work cannot be distinguished. */
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
	maker_fail(m, 0, 9 * GiB, GiB, TOTAL, 1); /* a cache dropped for lack of memory */
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
	return cmocka_run_group_tests_name("phases_infer", tests, NULL, NULL);
}
