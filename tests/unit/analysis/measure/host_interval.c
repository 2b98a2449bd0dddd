/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 95 % interval of an estimate by itself: blocks of known sizes are drawn with the sampler's
 * probability. Thousands of runs of each mix, so that each mix is required to be within 93 to 97 %,
 * also at the default mean with its few samples. unit/both_sides/host_estimate.c tests sampler,
 * recording and reader together.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "analysis/measure/heap.h"
#include "analysis/recording/host_weight.h"

enum { CLASSES = 4, RUNS = 2000 };
static unsigned runs = RUNS;

struct mix {
	const char *name;
	uint64_t mean_bytes;
	unsigned blocks;
	struct { unsigned percent; uint32_t least, most; } classes[CLASSES];
};

struct score { double ratio_bytes, ratio_count; unsigned held_bytes, held_count; };

static uint64_t next(uint64_t *state) /* splitmix64 */
{
	uint64_t x = *state += 0x9E3779B97F4A7C15ull;
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
	x = (x ^ x >> 27) * 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

static double chance_of(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

static uint32_t *sizes_of(const struct mix *mix, uint64_t *random)
{
	uint32_t *sizes = calloc(mix->blocks, sizeof *sizes);
	for (unsigned i = 0; i < mix->blocks; i++) {
		unsigned percent = (unsigned)(next(random) % 100), c = 0;
		while (percent >= mix->classes[c].percent)
			percent -= mix->classes[c++].percent;
		sizes[i] = mix->classes[c].least +
		           (uint32_t)(next(random) %
		                      (mix->classes[c].most - mix->classes[c].least + 1));
	}
	return sizes;
}

static bool holds(struct host_interval interval, double truth)
{
	return interval.low <= truth && truth <= interval.high;
}

static void assert_between(double value, double low, double high)
{
	if (!(low <= value && value <= high))
		fail_msg("%.4f is not between %.4f and %.4f", value, low, high);
}

static void run(const struct mix *mix, const uint32_t *sizes, const double *chances,
                uint64_t *random, struct score *score)
{
	struct host_estimate bytes = { 0, 0, 0 }, count = { 0, 0, 0 };
	double truth = 0;
	for (unsigned i = 0; i < mix->blocks; i++) {
		truth += sizes[i];
		if (chance_of(random) >= chances[i])
			continue;
		host_estimate_add(&bytes, sizes[i] / chances[i], chances[i], 1);
		host_estimate_add(&count, 1 / chances[i], chances[i], 1);
	}
	score->ratio_bytes += bytes.value / truth;
	score->ratio_count += count.value / mix->blocks;
	score->held_bytes += holds(host_estimate_interval(&bytes, (double)mix->mean_bytes), truth);
	score->held_count += holds(host_estimate_interval(&count, INFINITY), mix->blocks);
}

/* Blocks of one size: how far it is to the next sample, instead of a draw for each block. */
static void run_equal(const struct mix *mix, double chance, uint64_t *random, struct score *score)
{
	struct host_estimate bytes = { 0, 0, 0 };
	double size = mix->classes[0].least, at = 0;
	while ((at += ceil(log1p(-chance_of(random)) / log1p(-chance))) <= mix->blocks)
		host_estimate_add(&bytes, size / chance, chance, 1);
	score->held_bytes += holds(host_estimate_interval(&bytes, (double)mix->mean_bytes),
	                           mix->blocks * size);
}

static void judge(const struct mix *mix, uint64_t random)
{
	uint32_t *sizes = sizes_of(mix, &random);
	double *chances = calloc(mix->blocks, sizeof *chances), samples = 0;
	struct score s = { 0 };
	for (unsigned i = 0; i < mix->blocks; i++)
		samples += chances[i] = host_weight_chance(sizes[i], mix->mean_bytes);
	for (unsigned i = 0; i < runs; i++)
		run(mix, sizes, chances, &random, &s);
	free(sizes);
	free(chances);
	if (runs != RUNS)
		return;
	print_message(
		"# %-28s %5.0f samples, estimate/truth: bytes %.4f, count %.4f; interval holds it: bytes %.2f %%, count %.2f %%\n",
		mix->name, samples, s.ratio_bytes / RUNS, s.ratio_count / RUNS,
		s.held_bytes * 100.0 / RUNS, s.held_count * 100.0 / RUNS);
	assert_between(s.ratio_bytes / RUNS, 0.99, 1.01);
	assert_between(s.ratio_count / RUNS, 0.99, 1.01);
	assert_between(s.held_bytes * 1.0 / RUNS, 0.93, 0.97);
	assert_between(s.held_count * 1.0 / RUNS, 0.93, 0.97);
}

static void test_interval__holds_for_each_mix_of_sizes(void **state)
{
	static const struct mix mixes[] = {
		{ "blocks of 64 bytes", 4096, 36000, { { 100, 64, 64 } } },
		{ "strings", 4096, 24000, { { 100, 8, 200 } } },
		{ "of a compiler",
		  8192,
		  36000,
		  { { 60, 8, 64 }, { 28, 65, 512 }, { 9, 513, 4096 }, { 3, 4097, 300000 } } },
		{ "buffers, some exact",
		  524288,
		  18000,
		  { { 70, 1024, 60000 }, { 30, 60000, 131072 } } },
		{ "nodes and pages", 8192, 90000, { { 90, 24, 48 }, { 10, 4096, 16384 } } },
		{ "strings, the default mean", 524288, 240000, { { 100, 8, 200 } } },
		{ "nodes, pages, default mean",
		  524288,
		  90000,
		  { { 90, 24, 48 }, { 10, 4096, 16384 } } },
	};
	for (unsigned m = 0; m < sizeof mixes / sizeof *mixes; m++)
		judge(&mixes[m], m + 11);
}

/* A handful of samples: at least as often as stated. The Poisson distribution has no interval for
 * exactly 95 %. */
static void test_interval__holds_with_few_samples(void **state)
{
	static const double expected[] = { 0.1, 0.3, 1, 3, 10 };
	for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
		struct mix mix = {
			"few", 524288, (unsigned)(expected[i] * 524288 / 64), { { 100, 64, 64 } }
		};
		struct score s = { 0 };
		double chance = host_weight_chance(64, mix.mean_bytes);
		uint64_t random = 100 + i;
		for (unsigned r = 0; r < runs; r++)
			run_equal(&mix, chance, &random, &s);
		if (runs == RUNS)
			assert_between(s.held_bytes * 1.0 / RUNS, 0.945, 1);
	}
}

static void test_interval__of_what_is_known_is_the_figure_itself(void **state)
{
	struct host_estimate known = { 12345, 0, 0 }, none = { 0, 0, 0 };
	struct host_interval interval = host_estimate_interval(&known, 0);
	assert_true(interval.low == 12345 && interval.high == 12345);
	/* more than 3.69 means would have been sampled, but once in forty times */
	interval = host_estimate_interval(&none, 524288);
	assert_true(interval.low == 0);
	assert_between(interval.high / 524288, 3.6, 3.75);
	assert_true(isinf(host_estimate_interval(&none, INFINITY).high));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval__holds_for_each_mix_of_sizes),
		cmocka_unit_test(test_interval__holds_with_few_samples),
		cmocka_unit_test(test_interval__of_what_is_known_is_the_figure_itself),
	};
	/* under valgrind only a few runs, for its checks: it is too slow for statistics */
	if (getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "vgpreload"))
		runs = 2;
	return cmocka_run_group_tests_name("host interval", tests, NULL, NULL);
}
