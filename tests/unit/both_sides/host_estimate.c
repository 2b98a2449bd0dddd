/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler and the reader together: five mixes of sizes, each allocated and freed in 200 runs
 * with different seeds, recorded in sampled mode and estimated by the analysis. The mean of
 * estimate/truth must be 1 within 1 %. The stated 95 % interval must contain the truth in 93 to 97
 * % of the runs, for bytes and counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/sampler.h"

enum { RUNS = 200, CLASSES = 4 };
static unsigned runs = RUNS;

struct mix {
	const char *name;
	uint64_t sample_bytes;
	unsigned steps;
	struct { unsigned percent; uint32_t least, most; } classes[CLASSES];
};

/* Enough blocks that 200 runs tell a bias of 1 %: some 500 samples, of the smallest class, too. */
static const struct mix mixes[] = {
	{ "blocks of 64 bytes", 4096, 60000, { { 100, 64, 64 } } },
	{ "strings", 4096, 40000, { { 100, 8, 200 } } },
	{ "of a compiler",
	  8192,
	  60000,
	  { { 60, 8, 64 }, { 28, 65, 512 }, { 9, 513, 4096 }, { 3, 4097, 300000 } } },
	{ "buffers, some exact", 524288, 30000, { { 70, 1024, 60000 }, { 30, 60000, 131072 } } },
	{ "nodes and pages", 8192, 150000, { { 90, 24, 48 }, { 10, 4096, 16384 } } },
};
enum { MIXES = sizeof mixes / sizeof *mixes };
static uint64_t then_bytes; /* the mean that the program sets half way; 0: none */

struct truth { uint64_t bytes, count; };
struct score { double ratio_bytes, ratio_count; unsigned held_bytes, held_count, runs; };

static char directory[] = "/tmp/cuflight-unit-XXXXXX", output[64];

static uint64_t next(uint64_t *state) /* splitmix64 */
{
	uint64_t x = *state += 0x9E3779B97F4A7C15ull;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static uint32_t size_of(const struct mix *mix, uint64_t *random)
{
	unsigned percent = (unsigned)(next(random) % 100), c = 0;
	while (percent >= mix->classes[c].percent)
		percent -= mix->classes[c++].percent;
	return mix->classes[c].least +
	       (uint32_t)(next(random) % (mix->classes[c].most - mix->classes[c].least + 1));
}

static void start(const struct mix *mix, uint64_t *random)
{
	static char options[96], place[96];
	static char *environment[] = { options, place, NULL };
	struct cuf_thread_state *t;
	snprintf(options, sizeof options,
	         "CUFLIGHT_OPTIONS=host=sampled:sample=%lu:size=4MiB:stack_depth=1:start=1",
	         (unsigned long)mix->sample_bytes);
	snprintf(place, sizeof place, "CUFLIGHT_OUTPUT=%s", output);
	cuf_recorder_start(environment);
	t = cuf_thread_enter();
	if (!cuf_gate_is_on() || !t)
		_exit(1);
	t->random = next(random) | 1;
	cuf_tls.countdown_bytes = (int64_t)cuf_sample_interval(&t->random, cuf_options.sample);
	cuf_thread_leave(t);
}

/* Two of five blocks are freed again, and their addresses are used anew. */
static struct truth replay(const struct mix *mix, uint64_t *random, uint32_t *sizes, uint32_t *live,
                           uint32_t *free_places)
{
	uint32_t live_count = 0, free_count = 0, places = 0;
	struct truth truth = { 0, 0 };
	struct cuf_host_undo undo;
	for (unsigned i = 0; i < mix->steps; i++) {
		if (i == mix->steps / 2 && then_bytes) {
			usleep(10000); /* a tick of the clock that orders allocations */
			if (cuf_host_set_sample(then_bytes))
				_exit(1);
		}
		uint32_t place = free_count ? free_places[--free_count] : ++places;
		live[live_count++] = place;
		sizes[place] = size_of(mix, random);
		truth.bytes += sizes[place];
		cuf_host_alloc((void *)((uintptr_t)place << 4), sizes[place], CUF_HOST_ALLOC,
		               __builtin_frame_address(0));
		if (next(random) % 5 < 2) {
			uint32_t at = (uint32_t)(next(random) % live_count);
			place = live[at];
			live[at] = live[--live_count];
			free_places[free_count++] = place;
			truth.bytes -= sizes[place];
			cuf_host_free((void *)((uintptr_t)place << 4), CUF_HOST_FREE, &undo);
		}
	}
	truth.count = live_count;
	return truth;
}

static void record(const struct mix *mix, uint64_t seed, struct truth *truth)
{
	size_t bytes = (mix->steps + 1) * sizeof(uint32_t);
	uint64_t random = seed;
	start(mix, &random);
	*truth = replay(mix, &random, malloc(bytes), malloc(bytes), malloc(bytes));
	_exit(0);
}

static bool within(uint64_t value, uint64_t low, uint64_t high)
{
	return low <= value && value <= high;
}

static void run(const struct mix *mix, uint64_t seed, struct truth *truth, struct score *score)
{
	static const struct facts_options defaults;
	struct reader_error error = { 0 };
	const struct fact_host *h;
	struct facts *facts;
	int status;
	pid_t child = fork();
	if (!child)
		record(mix, seed, truth);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(facts_build(output, &defaults, &facts, &error), 0);
	h = &facts->processes[0].host;
	assert_int_equal(h->malloc_basis, BASIS_ESTIMATED);
	assert_int_equal(facts->events_lost, 0);
	assert_int_equal(facts->coverage.lost_count, 0);
	score->ratio_bytes += (double)h->malloc_live_bytes / (double)truth->bytes;
	score->ratio_count += (double)h->malloc_live_count / (double)truth->count;
	score->held_bytes += within(truth->bytes, h->malloc_low_bytes, h->malloc_high_bytes);
	/* an unknown end is all ones */
	score->held_count += within(truth->count, h->malloc_low_count, h->malloc_high_count);
	score->runs++;
	facts_free(facts);
	unlink(output);
}

static struct score runs_of(const struct mix *mix, uint64_t seed)
{
	struct truth *truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE,
	                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct score score = { 0 };
	assert_true(truth != MAP_FAILED);
	for (unsigned i = 0; i < runs; i++)
		run(mix, seed << 32 | i, truth, &score);
	munmap(truth, sizeof *truth);
	if (runs != RUNS)
		skip();
	print_message(
		"# %-20s estimate/truth: bytes %.4f, count %.4f; interval holds it: bytes %.1f %%, count %.1f %%\n",
		mix->name, score.ratio_bytes / RUNS, score.ratio_count / RUNS,
		score.held_bytes * 100.0 / RUNS, score.held_count * 100.0 / RUNS);
	return score;
}

static void assert_between(double value, double low, double high)
{
	if (!(low <= value && value <= high))
		fail_msg("%.4f is not between %.4f and %.4f", value, low, high);
}

static void test_estimate__of_five_mixes_is_unbiased_and_its_interval_holds(void **state)
{
	struct score all = { 0 };
	for (unsigned i = 0; i < MIXES; i++) {
		struct score s = runs_of(&mixes[i], i + 1);
		assert_between(s.ratio_bytes / RUNS, 0.99, 1.01);
		assert_between(s.ratio_count / RUNS, 0.99, 1.01);
		/* three standard deviations of 200 runs at 95 %; over 2,000 in
		 * unit/analysis/measure/host_interval.c, 93 to 97 % */
		assert_between(s.held_bytes * 1.0 / RUNS, 0.90, 0.995);
		assert_between(s.held_count * 1.0 / RUNS, 0.90, 0.995);
		all.held_bytes += s.held_bytes;
		all.held_count += s.held_count;
		all.runs += s.runs;
	}
	assert_between(all.held_bytes * 1.0 / all.runs, 0.93, 0.97);
	assert_between(all.held_count * 1.0 / all.runs, 0.93, 0.97);
}

/* A handful of samples, or none: the interval is wide, and still right. */
static void test_estimate__interval_holds_with_few_samples(void **state)
{
	static const double expected[] = { 0.3, 1, 3, 10 };
	unsigned held = 0, held_count = 0, all = 0;
	for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
		struct mix mix = { "some samples",
			           65536,
			           (unsigned)(expected[i] * 65536 / 64 / 0.6),
			           { { 100, 64, 64 } } };
		struct score s = runs_of(&mix, 100 + i);
		assert_between(s.held_bytes * 1.0 / RUNS, 0.93, 1);
		assert_between(s.held_count * 1.0 / RUNS, 0.93, 1);
		held += s.held_bytes;
		held_count += s.held_count;
		all += s.runs;
	}
	/* counts so small have no interval for exactly 95 % */
	assert_between(held * 1.0 / all, 0.95, 1);
	assert_between(held_count * 1.0 / all, 0.95, 1);
}

static void test_estimate__holds_when_the_mean_is_changed(void **state)
{
	static const struct mix fine = { "coarser half way", 4096, 60000, { { 100, 8, 200 } } },
				coarse = { "finer half way", 32768, 60000, { { 100, 8, 200 } } };
	struct score finer, coarser;
	then_bytes = coarse.sample_bytes;
	coarser = runs_of(&fine, 200);
	then_bytes = fine.sample_bytes;
	finer = runs_of(&coarse, 201);
	then_bytes = 0;
	for (const struct score *s = &coarser; s; s = s == &coarser ? &finer : NULL) {
		/* the thread's sample that straddles the change is one of some 500 */
		assert_between(s->ratio_bytes / RUNS, 0.98, 1.02);
		assert_between(s->ratio_count / RUNS, 0.98, 1.02);
		assert_between(s->held_bytes * 1.0 / RUNS, 0.90, 0.995);
		assert_between(s->held_count * 1.0 / RUNS, 0.90, 0.995);
	}
}

static void test_estimate__nothing_sampled_is_not_nothing_there(void **state)
{
	static const struct mix mix = { "one small block", 524288, 1, { { 100, 100, 100 } } };
	static const struct facts_options defaults;
	struct reader_error error = { 0 };
	const struct fact_host *h;
	struct facts *facts;
	struct truth truth;
	int status;
	pid_t child = fork();
	if (!child)
		record(&mix, 1, &truth);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(facts_build(output, &defaults, &facts, &error), 0);
	h = &facts->processes[0].host;
	assert_int_equal(h->malloc_live_bytes, 0);
	assert_int_equal(h->malloc_low_bytes, 0);
	/* exp(-3.84) = 2 %: more would have been sampled */
	assert_between((double)h->malloc_high_bytes / 524288, 3.6, 4);
	assert_true(h->malloc_high_count == CUF_UNKNOWN);
	facts_free(facts);
	unlink(output);
}

static int setup(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(output, sizeof output, "%s/r.cuf", directory);
	/* under valgrind only a few runs, for its checks: it is too slow for statistics */
	if (getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "vgpreload"))
		runs = 2;
	return 0;
}

static int teardown(void **state)
{
	unlink(output);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_estimate__of_five_mixes_is_unbiased_and_its_interval_holds),
		cmocka_unit_test(test_estimate__interval_holds_with_few_samples),
		cmocka_unit_test(test_estimate__holds_when_the_mean_is_changed),
		cmocka_unit_test(test_estimate__nothing_sampled_is_not_nothing_there),
	};
	return cmocka_run_group_tests_name("host estimate", tests, setup, teardown);
}
