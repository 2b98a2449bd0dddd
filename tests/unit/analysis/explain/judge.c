/* SPDX-License-Identifier: Apache-2.0 */
/* States of call sites over passes, and how long a resource lasts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/explain/judge.h"

#define SECOND 1000000000ull
#define MiB ((uint64_t)1 << 20)
#define START_NS (1000000 * SECOND)

/* A process with one call site on one device. */
struct scene {
	struct fact_process process;
	struct fact_device device;
	struct fact_site site;
	struct fact_recent recent;
	struct facts facts;
};

/* 1 MiB/s with certainty since the start; 1 GiB of the device is free. */
static void set_scene(struct scene *scene, enum fact_class class)
{
	*scene = (struct scene){
		.process = { .start_ns = START_NS, .end = END_RUNNING, .pid = 1 },
		.device = { .total_bytes = 4096 * MiB, .free_bytes = 1024 * MiB },
		.site = { .class = class, .kind = CUF_KIND_DEVICE, .bytes = 500 * MiB,
			  .slope_bytes_per_s = (double)MiB, .shape = SHAPE_LINEAR, .pace = 1,
			  .interval = { (double)MiB / 2, 2.0 * (double)MiB }, .cycles = 1000,
			  .own_cycles = 1000,
			  .first_ns = START_NS },
	};
	scene->process.host = (struct fact_host){ .memory_total_bytes = CUF_UNKNOWN,
						  .cgroup_max_bytes = CUF_UNKNOWN,
						  .cgroup_bytes = CUF_UNKNOWN,
						  .rss_bytes = CUF_UNKNOWN };
	scene->facts = (struct facts){ .processes = &scene->process, .process_count = 1,
				       .devices = &scene->device, .device_count = 1,
				       .leaks = &scene->site, .leak_count = 1 };
}

static const struct judgement *pass_at(struct live_judge *judge, const struct scene *scene,
				       double seconds)
{
	return live_judge_pass(judge, &(struct judge_seen){
		.facts = &scene->facts, .now_ns = START_NS + (uint64_t)(seconds * 1e9),
		.cgroup_working_bytes = CUF_UNKNOWN, .machine_available_bytes = CUF_UNKNOWN });
}

/* By who asks only once. */
static const struct judgement *once_at(struct live_judge **judge, const struct scene *scene,
				       double seconds)
{
	live_judge_free(*judge);
	*judge = live_judge_new(&(struct judge_rules){ .passes = 1 });
	return pass_at(*judge, scene, seconds);
}

static void test_judge__a_rise_is_no_leak_before_its_time(void **state)
{
	struct live_judge *judge = NULL;
	struct scene scene;
	const struct judgement *judgement;

	(void)state;
	set_scene(&scene, CLASS_LEAK);
	judgement = once_at(&judge, &scene, 299);
	assert_int_equal(judgement->sites[0].state, LIVE_WARMING);
	assert_true(judgement->is_too_early);
	assert_true(isnan(judgement->resources[0].oom_s[LIVE_EXPECTED]));
	judgement = once_at(&judge, &scene, 301);
	assert_int_equal(judgement->sites[0].state, LIVE_LEAK);
	assert_false(judgement->is_too_early);
	/* an hour is enough, however long the program runs; a quarter of its time is */
	scene.site.first_ns = START_NS + 8000 * SECOND;
	judgement = once_at(&judge, &scene, 10000);
	assert_int_equal(judgement->sites[0].state, LIVE_WARMING);
	judgement = once_at(&judge, &scene, 10700);
	assert_int_equal(judgement->sites[0].state, LIVE_LEAK);
	scene.site.first_ns = START_NS + 90000 * SECOND;
	judgement = once_at(&judge, &scene, 93601);
	assert_int_equal(judgement->sites[0].state, LIVE_LEAK);
	/* few turns of the work prove nothing, nor does a cache that is filled once */
	scene.site.own_cycles = 39;
	scene.site.first_ns = START_NS;
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_WARMING);
	scene.site.own_cycles = 40;
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_LEAK);
	scene.site.role = "kv";
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_WARMING);
	assert_int_equal(once_at(&judge, &scene, 601)->sites[0].state, LIVE_LEAK);
	live_judge_free(judge);
}

static void test_judge__what_rises_less_and_less_is_filled(void **state)
{
	struct live_judge *judge = NULL;
	struct scene scene;

	(void)state;
	set_scene(&scene, CLASS_LEAK);
	scene.site.pace = 0.7;
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_FILLING);
	assert_true(isinf(judge ? once_at(&judge, &scene, 500)->resources[0].oom_s[0] : 0));
	/* a pace that is kept for once proves nothing, where the minimum does not rise all along */
	set_scene(&scene, CLASS_RETAINED);
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_FILLING);
	scene.site.shape = SHAPE_PLATEAU;
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_STEADY);
	set_scene(&scene, CLASS_BOUNDED_CACHE);
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_STEADY);
	set_scene(&scene, CLASS_GROWING);
	assert_int_equal(once_at(&judge, &scene, 500)->sites[0].state, LIVE_WARMING);
	assert_int_equal(once_at(&judge, &scene, 601)->sites[0].state, LIVE_GROWING);
	/* the ages of blocks are a proof of their own: they need fewer turns */
	scene.site.own_cycles = 24;
	assert_int_equal(once_at(&judge, &scene, 601)->sites[0].state, LIVE_GROWING);
	live_judge_free(judge);
}

/* The states after passes at these times. */
static void expect_states(struct live_judge *judge, struct scene *scene, const double *seconds,
			  const enum fact_class *classes, const enum live_state *states,
			  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		scene->site.class = classes[i];
		assert_int_equal(pass_at(judge, scene, seconds[i])->sites[0].state, states[i]);
	}
}

static void test_judge__passes_in_a_row_change_a_state(void **state)
{
	static const double seconds[] = { 400, 430, 435, 460, 490, 520, 550, 580, 610 };
	static const enum fact_class classes[] = {
		CLASS_LEAK, CLASS_LEAK, CLASS_LEAK, CLASS_LEAK, CLASS_LIVE,
		CLASS_LEAK, CLASS_LIVE, CLASS_LIVE, CLASS_LIVE };
	static const enum live_state states[] = {
		LIVE_WARMING, LIVE_WARMING, LIVE_WARMING, LIVE_LEAK, LIVE_LEAK,
		LIVE_LEAK, LIVE_LEAK, LIVE_LEAK, LIVE_STEADY };
	static const double seldom[] = { 700, 790, 880 };
	static const enum fact_class leaks[] = { CLASS_LEAK, CLASS_LEAK, CLASS_LEAK };
	static const enum fact_class ages[] = { CLASS_GROWING, CLASS_GROWING, CLASS_GROWING };
	static const enum live_state soon[] = { LIVE_WARMING, LIVE_LEAK, LIVE_LEAK };
	static const enum live_state late[] = { LIVE_WARMING, LIVE_WARMING, LIVE_GROWING };
	static const double later[] = { 700, 730, 760 };
	static const enum fact_class mixed[] = { CLASS_LEAK, CLASS_GROWING, CLASS_LEAK };
	static const enum live_state grows[] = { LIVE_WARMING, LIVE_WARMING, LIVE_GROWING };
	struct live_judge *judge = live_judge_new(NULL);
	struct scene scene;

	(void)state;
	set_scene(&scene, CLASS_LEAK);
	expect_states(judge, &scene, seconds, classes, states, 9);
	live_judge_free(judge);
	/* who looks seldom needs two passes for a leak, and three for what only grows */
	judge = live_judge_new(NULL);
	expect_states(judge, &scene, seldom, leaks, soon, 3);
	live_judge_free(judge);
	judge = live_judge_new(NULL);
	expect_states(judge, &scene, seldom, ages, late, 3);
	live_judge_free(judge);
	judge = live_judge_new(NULL); /* a leak grows, too */
	expect_states(judge, &scene, later, mixed, grows, 3);
	live_judge_free(judge);
}

static void test_judge__the_time_left_is_headroom_by_what_is_proven(void **state)
{
	struct live_judge *judge = NULL;
	struct scene scene;
	const struct live_resource *gpu;

	(void)state;
	set_scene(&scene, CLASS_LEAK);
	gpu = &once_at(&judge, &scene, 500)->resources[0];
	assert_int_equal(gpu->kind, LIVE_GPU);
	assert_true(fabs(gpu->oom_s[LIVE_EXPECTED] - 1024) < 1e-6 &&
		    fabs(gpu->oom_s[LIVE_SOONEST] - 512) < 1e-6 &&
		    fabs(gpu->oom_s[LIVE_LATEST] - 2048) < 1e-6);
	/* in the middle of a burst of 300 MiB, of which 100 are there */
	scene.recent = (struct fact_recent){
		.live_bytes = 600 * MiB, .burst_bytes = 300 * MiB,
		.minute = { .low_bytes = 500 * MiB, .outer_peak_bytes = CUF_UNKNOWN },
		.hour = { .inner_peak_bytes = CUF_UNKNOWN } };
	scene.process.recent = &scene.recent;
	scene.process.recent_count = 1;
	gpu = &once_at(&judge, &scene, 500)->resources[0];
	assert_true(fabs(gpu->headroom_bytes / (double)MiB - 824) < 1e-6);
	assert_true(fabs(gpu->oom_s[LIVE_EXPECTED] - 824) < 1e-6);
	/* the framework reserves 50 MiB more than it ever needed */
	scene.recent.minute.outer_peak_bytes = 450 * MiB;
	scene.recent.hour.inner_peak_bytes = 400 * MiB;
	gpu = &once_at(&judge, &scene, 500)->resources[0];
	assert_true(fabs(gpu->headroom_bytes / (double)MiB - 874) < 1e-6);
	scene.device.free_bytes = 0;
	gpu = &once_at(&judge, &scene, 500)->resources[0];
	assert_true(gpu->headroom_bytes < 0 && gpu->oom_s[LIVE_EXPECTED] <= 0);
	scene.device.free_bytes = CUF_UNKNOWN;
	assert_true(isnan(once_at(&judge, &scene, 500)->resources[0].oom_s[LIVE_EXPECTED]));
	live_judge_free(judge);
}

static void test_judge__host_memory_has_its_own_resources(void **state)
{
	struct live_judge *judge = live_judge_new(&(struct judge_rules){ .passes = 1 });
	const struct judgement *judgement;
	struct scene scene;

	(void)state;
	set_scene(&scene, CLASS_GROWING);
	scene.site.kind = CUF_KIND_HOST;
	scene.site.device = FACT_NONE;
	scene.process.host.cgroup_max_bytes = 2000 * MiB;
	judgement = live_judge_pass(judge, &(struct judge_seen){
		.facts = &scene.facts, .now_ns = START_NS + 700 * SECOND,
		.cgroup_working_bytes = 1800 * MiB, .machine_available_bytes = 4000 * MiB });
	assert_true(isinf(judgement->resources[0].oom_s[LIVE_EXPECTED]));
	assert_int_equal(judgement->resources[1].kind, LIVE_CGROUP);
	assert_true(fabs(judgement->resources[1].oom_s[LIVE_EXPECTED] - 200) < 1e-6);
	assert_int_equal(judgement->resources[2].kind, LIVE_MACHINE);
	assert_true(fabs(judgement->resources[2].oom_s[LIVE_EXPECTED] - 4000) < 1e-6);
	live_judge_free(judge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge__a_rise_is_no_leak_before_its_time),
		cmocka_unit_test(test_judge__what_rises_less_and_less_is_filled),
		cmocka_unit_test(test_judge__passes_in_a_row_change_a_state),
		cmocka_unit_test(test_judge__the_time_left_is_headroom_by_what_is_proven),
		cmocka_unit_test(test_judge__host_memory_has_its_own_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
