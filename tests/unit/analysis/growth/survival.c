/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth by the ages of blocks: which patterns of births and frees are growth, and how often the
 * chance of the sample decides otherwise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "analysis/growth/survival.h"

#define SECOND 1000000000ull
#define MiB ((uint64_t)1 << 20)
#define SAMPLE_BYTES 524288.0 /* what a small block stands for at the default mean */

static struct survival_time lasting(double seconds)
{
	return (struct survival_time){ .begin_ns = SECOND,
				       .end_ns = SECOND + (uint64_t)(seconds * 1e9),
				       .events_ns = SECOND };
}

/* A block that is live, born at a share of the time; nothing else of it is in the events. */
static void add_block(struct survival *survival, const struct survival_time *time, double at,
		      double bytes, double variance)
{
	double span = (double)(time->end_ns - time->begin_ns);
	struct survival_part *part = &survival->parts[survival_part(
		time, time->begin_ns + (uint64_t)(at * span), NULL)];
	part->bytes += bytes;
	part->variance += variance;
	part->net_bytes += bytes;
	part->count++;
}

/* Every block is known; born evenly from one share of the time to another. */
static struct survival even(const struct survival_time *time, double from, double to,
			    unsigned blocks, double bytes)
{
	struct survival survival = { 0 };
	for (unsigned i = 0; i < blocks; i++)
		add_block(&survival, time, from + (to - from) * (i + 0.5) / blocks, bytes, 0);
	return survival;
}

static enum survival_verdict verdict(const struct survival *survival,
				     const struct survival_time *time)
{
	return survival_judge(survival, survival, time, false).verdict;
}

static void test_survival__a_steady_site_grows_at_its_rate(void **state)
{
	struct survival_time time = lasting(24);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB);
	struct survival_growth growth = survival_judge(&survival, &survival, &time, false);
	assert_int_equal(growth.verdict, SURVIVAL_GROWING);
	assert_true(fabs(growth.bytes_per_s / (10.0 * (double)MiB) - 1) < 0.01);
	assert_true(growth.low == growth.bytes_per_s && growth.high == growth.bytes_per_s);
}

/* An interpreter that shuts down on a busy machine; who is idle for longer has stopped. */
static void test_survival__an_end_in_which_nothing_happens_is_no_work(void **state)
{
	struct survival_time time = lasting(24);
	struct survival ended = even(&time, 0, 21.0 / 24, 210, (double)MiB),
			idle = even(&time, 0, 16.0 / 24, 160, (double)MiB), busy = ended;
	struct survival_growth growth = survival_judge(&ended, &ended, &time, false);
	assert_int_equal(growth.verdict, SURVIVAL_GROWING);
	assert_true(fabs(growth.bytes_per_s / (10.0 * (double)MiB) - 1) < 0.01);
	assert_int_equal(verdict(&idle, &time), SURVIVAL_NOTHING);
	/* others go on to work, so this one has stopped: its last third has half of the time */
	ended = even(&time, 0, 19.0 / 24, 190, (double)MiB);
	busy.parts[SURVIVAL_PARTS - 1].net_bytes = 1;
	assert_int_equal(survival_judge(&ended, &busy, &time, false).verdict, SURVIVAL_NOTHING);
}

static void test_survival__time_proves_a_leak(void **state)
{
	struct survival_time hour = lasting(4200), week = lasting(604800), less = lasting(3600);
	struct survival survival = even(&hour, 0, 1, 240, (double)MiB);
	assert_int_equal(verdict(&survival, &hour), SURVIVAL_LASTING);
	assert_int_equal(verdict(&survival, &week), SURVIVAL_LASTING);
	assert_int_equal(verdict(&survival, &less), SURVIVAL_GROWING);
}

static void test_survival__a_short_program_is_judged_only_if_memory_ran_out(void **state)
{
	struct survival_time time = lasting(1);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB);
	assert_int_equal(verdict(&survival, &time), SURVIVAL_NOTHING);
	assert_int_equal(survival_judge(&survival, &survival, &time, true).verdict, SURVIVAL_GROWING);
}

static void test_survival__what_stops_or_begins_late_is_nothing(void **state)
{
	struct survival_time time = lasting(60);
	struct survival loading = even(&time, 0, 0.12, 240, (double)MiB);
	struct survival filled = even(&time, 0, 0.6, 240, (double)MiB);
	struct survival replaced = even(&time, 0.7, 1, 240, (double)MiB);
	struct survival few = even(&time, 0, 1, 23, (double)MiB);
	struct survival small = even(&time, 0, 1, 240, 1024);
	assert_int_equal(verdict(&loading, &time), SURVIVAL_NOTHING);
	assert_int_equal(verdict(&filled, &time), SURVIVAL_NOTHING);
	assert_int_equal(verdict(&replaced, &time), SURVIVAL_NOTHING);
	assert_int_equal(verdict(&few, &time), SURVIVAL_NOTHING);
	assert_int_equal(verdict(&small, &time), SURVIVAL_NOTHING);
}

/* Whatever share of its life a program took to start: 369 blocks of half a mebibyte each. */
static void test_survival__where_memory_ran_out_the_work_is_judged_however_late(void **state)
{
	static const double begins[] = { 0.05, 0.3, 0.51, 2.0 / 3, 0.8, 0.9, 0.96, 0.985 };
	struct survival_time time = lasting(18);
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		struct survival late = even(&time, begins[i], 1, 369, 0.5 * (double)MiB), others;
		struct survival_growth growth = survival_judge(&late, &late, &time, true);
		double rate = 369 * 0.5 * (double)MiB / (18 * (1 - begins[i]));
		print_message("# begins at %.3f: %.1f MiB/s of %.1f\n", begins[i],
			      growth.bytes_per_s / (double)MiB, rate / (double)MiB);
		assert_int_equal(growth.verdict, SURVIVAL_GROWING);
		assert_true(fabs(growth.bytes_per_s / rate - 1) < 0.1);
		/* a little from before its work changes nothing; nor is a late cache a leak, while
		 * others work on */
		add_block(&late, &time, 0.2, (double)MiB, 0);
		assert_int_equal(survival_judge(&late, &late, &time, true).verdict,
				 SURVIVAL_GROWING);
		late = even(&time, begins[i], begins[i] + (1 - begins[i]) * 0.6, 369, (double)MiB);
		others = even(&time, 0, 1, 2400, (double)MiB);
		assert_int_equal(survival_judge(&late, &others, &time, true).verdict,
				 SURVIVAL_NOTHING);
	}
}

/* A program keeps 8 MiB in each bin, and hardly any in the last of them before the kernel ends it:
 * for half a second it waited for pages. For two seconds it had what it wanted; so it had if it
 * worked on meanwhile. */
static void test_survival__a_stall_before_the_kernel_ends_it_is_no_time_of_its_work(void **state)
{
	static const double lives_s[] = { 1, 4 };
	for (size_t i = 0; i < sizeof lives_s / sizeof *lives_s; i++) {
		struct survival_time time = lasting(lives_s[i]);
		struct survival site = even(&time, 0, 0.5, 96, (double)MiB), works;
		struct survival stall = even(&time, 0.5, 1, 12, (double)MiB / 8);
		survival_add(&site, &stall);
		works = site;
		for (unsigned part = 0; part < SURVIVAL_PARTS; part++)
			works.parts[part].freed_bytes = (double)MiB * 2;
		assert_int_equal(survival_judge(&site, &site, &time, true).verdict,
				 i ? SURVIVAL_NOTHING : SURVIVAL_GROWING);
		assert_int_equal(survival_judge(&site, &works, &time, true).verdict,
				 SURVIVAL_NOTHING);
	}
}

/* A fast machine fills its limit in a tenth of a second: the clock of births sets how narrow bins
 * may be, and the work may begin in the second half of the stretch then. */
static void test_survival__where_memory_ran_out_the_work_may_be_short(void **state)
{
	static const double work_s[] = { 0.06, 0.1, 0.136, 0.2 };
	struct survival_time time = lasting(1.2);
	for (size_t i = 0; i < sizeof work_s / sizeof *work_s; i++) {
		struct survival late = even(&time, 1 - work_s[i] / 1.2, 1, 581, (double)MiB / 3);
		assert_int_equal(survival_judge(&late, &late, &time, true).verdict,
				 SURVIVAL_GROWING);
	}
}

/* A tenth of the pace for the second half: the kernel looks for pages, and all work is as slow. */
static void test_survival__at_a_limit_a_rise_keeps_pace_with_the_work(void **state)
{
	struct survival_time time = lasting(24);
	struct survival site = even(&time, 0, 0.5, 400, (double)MiB), slow = site, fast = site;
	struct survival late = even(&time, 0.5, 1, 40, (double)MiB);
	survival_add(&site, &late);
	slow = fast = site;
	for (unsigned part = 0; part < SURVIVAL_PARTS; part++) {
		slow.parts[part].freed_bytes = site.parts[part].bytes / 8;
		fast.parts[part].freed_bytes = (double)MiB * (part < SURVIVAL_BINS / 2 ? 4 : 1);
	}
	assert_int_equal(survival_judge(&site, &slow, &time, true).verdict, SURVIVAL_GROWING);
	assert_int_equal(survival_judge(&site, &slow, &time, false).verdict, SURVIVAL_NOTHING);
	/* others go on at their pace, or do nothing that could measure it: it fills up */
	assert_int_equal(survival_judge(&site, &fast, &time, true).verdict, SURVIVAL_NOTHING);
	assert_int_equal(survival_judge(&site, &site, &time, true).verdict, SURVIVAL_NOTHING);
}

/* 45 MiB of small blocks, of which a busy machine let the last third make 9: so few samples are no
 * proof for a program that goes on, and enough where memory ran out. */
static void test_survival__where_memory_ran_out_fewer_samples_are_enough(void **state)
{
	struct survival_time time = lasting(24);
	struct survival site = { 0 };
	for (unsigned i = 0; i < 72; i++)
		add_block(&site, &time, 0.13 + 0.57 * i / 72, SAMPLE_BYTES,
			  SAMPLE_BYTES * SAMPLE_BYTES);
	for (unsigned i = 0; i < 19; i++)
		add_block(&site, &time, 0.71 + 0.28 * i / 19, SAMPLE_BYTES,
			  SAMPLE_BYTES * SAMPLE_BYTES);
	assert_int_equal(survival_judge(&site, &site, &time, true).verdict, SURVIVAL_GROWING);
	assert_int_equal(survival_judge(&site, &site, &time, false).verdict, SURVIVAL_NOTHING);
}

/* A turn needs 40 MiB and frees them, and keeps 4: what a line does and what it keeps are one row.
 * The last turn is at work when memory runs out. */
static void test_survival__what_turns_need_and_free_hides_no_growth(void **state)
{
	struct survival_time time = lasting(24);
	struct survival site = even(&time, 0, 1, 240, 0.4 * (double)MiB), full = site;
	for (unsigned part = 0; part + 1 < SURVIVAL_PARTS; part++) {
		double needs = (part % 3 ? -20.0 : 40.0) * (double)MiB;
		site.parts[part].net_bytes += needs;
		full.parts[part].net_bytes = needs;
	}
	assert_int_equal(survival_judge(&site, &site, &time, true).verdict, SURVIVAL_GROWING);
	assert_int_equal(survival_judge(&full, &full, &time, true).verdict, SURVIVAL_NOTHING);
}

/* Large blocks are all recorded, so that no chance decides, and few turns are enough. */
static void test_survival__where_memory_ran_out_few_large_blocks_are_enough(void **state)
{
	struct survival_time time = lasting(24);
	struct survival site = even(&time, 0.13, 1, 13, 4.0 * (double)MiB);
	struct survival burst = even(&time, 0.5, 0.6, 13, 4.0 * (double)MiB);
	struct survival sampled = { 0 };
	assert_int_equal(survival_judge(&site, &site, &time, true).verdict, SURVIVAL_GROWING);
	assert_int_equal(survival_judge(&site, &site, &time, false).verdict, SURVIVAL_NOTHING);
	assert_int_equal(survival_judge(&burst, &burst, &time, true).verdict, SURVIVAL_NOTHING);
	for (unsigned i = 0; i < 13; i++)
		add_block(&sampled, &time, 0.13 + 0.87 * (i + 0.5) / 13, SAMPLE_BYTES,
			  SAMPLE_BYTES * SAMPLE_BYTES);
	assert_int_equal(survival_judge(&sampled, &sampled, &time, true).verdict, SURVIVAL_NOTHING);
}

/* It gets no processor for half of the time, or its model is slow to answer. */
static void test_survival__a_wait_of_the_whole_program_is_no_time_of_its_work(void **state)
{
	struct survival_time time = lasting(24);
	struct survival site = even(&time, 0.13, 0.2, 40, (double)MiB), waits, works;
	struct survival later = even(&time, 0.71, 1, 160, (double)MiB);
	survival_add(&site, &later);
	waits = works = site;
	for (unsigned part = 0; part < SURVIVAL_PARTS; part++) {
		works.parts[part].freed_bytes = (double)MiB;
		waits.parts[part].freed_bytes = site.parts[part].bytes;
	}
	assert_int_equal(survival_judge(&site, &waits, &time, true).verdict, SURVIVAL_GROWING);
	assert_int_equal(survival_judge(&site, &waits, &time, false).verdict, SURVIVAL_NOTHING);
	/* others worked on: it was made in two bursts */
	assert_int_equal(survival_judge(&site, &works, &time, true).verdict, SURVIVAL_NOTHING);
}

static void test_survival__parts_follow_each_other(void **state)
{
	struct survival_time time = lasting(24);
	uint64_t end_ns, at = time.begin_ns;
	for (unsigned part = 0; part < SURVIVAL_PARTS; part++) {
		assert_int_equal(survival_part(&time, at, &end_ns), part);
		assert_true(end_ns > at);
		at = end_ns + 16; /* rounding */
	}
	assert_int_equal(end_ns, UINT64_MAX);
	assert_int_equal(survival_part(&time, 0, &end_ns), 0);
	assert_int_equal(survival_part(&time, time.end_ns + 5, NULL), SURVIVAL_PARTS - 1);
}

static void test_survival__what_is_loaded_hides_no_growth(void **state)
{
	struct survival_time time = lasting(60);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB);
	add_block(&survival, &time, 0.05, 4096.0 * (double)MiB, 0);
	assert_int_equal(verdict(&survival, &time), SURVIVAL_GROWING);
}

/* Its live blocks are of every age, but it frees one for each that it makes. */
static void test_survival__a_full_cache_with_random_eviction_is_nothing(void **state)
{
	struct survival_time time = lasting(60);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB);
	for (unsigned part = SURVIVAL_BINS / 2; part < SURVIVAL_PARTS; part++)
		survival.parts[part].net_bytes = 0;
	assert_int_equal(verdict(&survival, &time), SURVIVAL_NOTHING);
}

/* State that was loaded by one call site and is replaced by another. */
static void test_survival__what_replaces_another_sites_blocks_is_nothing(void **state)
{
	struct survival_time time = lasting(60);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB), nothing = { 0 };
	assert_int_equal(survival_judge(&survival, &nothing, &time, false).verdict,
			 SURVIVAL_NOTHING);
}

/* What allocates below a line of Python was exchanged halfway: two call sites of one place. */
static void test_survival__halves_of_one_place_grow_together(void **state)
{
	struct survival_time time = lasting(60);
	struct survival first = even(&time, 0, 0.55, 120, (double)MiB);
	struct survival second = even(&time, 0.55, 1, 120, (double)MiB), both = first;
	survival_add(&both, &second);
	assert_int_equal(survival_judge(&first, &both, &time, false).verdict, SURVIVAL_NOTHING);
	assert_int_equal(survival_judge(&second, &both, &time, false).verdict, SURVIVAL_NOTHING);
	assert_int_equal(survival_judge(&both, &both, &time, false).verdict, SURVIVAL_GROWING);
}

static void test_survival__lost_events_prove_nothing_but_births_stay(void **state)
{
	struct survival_time time = lasting(60);
	struct survival survival = even(&time, 0, 1, 240, (double)MiB);
	time.events_ns = time.begin_ns + 50 * SECOND;
	for (unsigned part = 0; part < survival_part(&time, time.events_ns, NULL); part++)
		survival.parts[part].net_bytes = 0;
	assert_int_equal(verdict(&survival, &time), SURVIVAL_GROWING);
	time.events_ns = time.end_ns - SECOND / 2;
	assert_int_equal(verdict(&survival, &time), SURVIVAL_NOTHING);
}

/* ---- chance ---- */

static double uniform(void) { return (rand() + 0.5) / ((double)RAND_MAX + 1); }

static unsigned poisson(double mean)
{
	unsigned count = 0;
	for (double left = mean; (left += log(uniform())) > 0;)
		count++;
	return count;
}

/* The share of recordings in which a sampled site that grew by so much is said to grow. It fills
 * over so many time constants; 0: it does not, and is a leak. */
static double share_growing(double grown_bytes, double constants)
{
	struct survival_time time = lasting(60);
	unsigned found = 0, runs = 2000;
	for (unsigned run = 0; run < runs; run++) {
		struct survival survival = { 0 };
		for (unsigned left = poisson(grown_bytes / SAMPLE_BYTES); left--;) {
			double at = uniform();
			if (constants > 0)
				at = -log(1 - at * (1 - exp(-constants))) / constants;
			add_block(&survival, &time, at, SAMPLE_BYTES, SAMPLE_BYTES * SAMPLE_BYTES);
		}
		found += verdict(&survival, &time) == SURVIVAL_GROWING;
	}
	return (double)found / runs;
}

static void test_survival__chance_is_bounded(void **state)
{
	double at_40 = share_growing(40.0 * (double)MiB, 0),
	       at_60 = share_growing(60.0 * (double)MiB, 0),
	       filling = share_growing(100.0 * (double)MiB, 2),
	       full = share_growing(100.0 * (double)MiB, 3);
	print_message("# growing: a leak of 40 MiB %.2f %%, of 60 MiB %.2f %%; "
		      "a cache of 100 MiB, 86 %% full %.2f %%, 95 %% full %.2f %%\n",
		      100 * at_40, 100 * at_60, 100 * filling, 100 * full);
	assert_true(at_40 > 0.94 && at_60 > 0.993);
	assert_true(filling < 0.18 && full < 0.005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_survival__a_steady_site_grows_at_its_rate),
		cmocka_unit_test(test_survival__an_end_in_which_nothing_happens_is_no_work),
		cmocka_unit_test(test_survival__time_proves_a_leak),
		cmocka_unit_test(
			test_survival__a_short_program_is_judged_only_if_memory_ran_out),
		cmocka_unit_test(test_survival__what_stops_or_begins_late_is_nothing),
		cmocka_unit_test(
			test_survival__where_memory_ran_out_the_work_is_judged_however_late),
		cmocka_unit_test(test_survival__where_memory_ran_out_the_work_may_be_short),
		cmocka_unit_test(
			test_survival__a_stall_before_the_kernel_ends_it_is_no_time_of_its_work),
		cmocka_unit_test(test_survival__at_a_limit_a_rise_keeps_pace_with_the_work),
		cmocka_unit_test(
			test_survival__where_memory_ran_out_fewer_samples_are_enough),
		cmocka_unit_test(test_survival__what_turns_need_and_free_hides_no_growth),
		cmocka_unit_test(test_survival__where_memory_ran_out_few_large_blocks_are_enough),
		cmocka_unit_test(test_survival__a_wait_of_the_whole_program_is_no_time_of_its_work),
		cmocka_unit_test(test_survival__parts_follow_each_other),
		cmocka_unit_test(test_survival__what_is_loaded_hides_no_growth),
		cmocka_unit_test(test_survival__a_full_cache_with_random_eviction_is_nothing),
		cmocka_unit_test(test_survival__what_replaces_another_sites_blocks_is_nothing),
		cmocka_unit_test(test_survival__halves_of_one_place_grow_together),
		cmocka_unit_test(test_survival__lost_events_prove_nothing_but_births_stay),
		cmocka_unit_test(test_survival__chance_is_bounded),
	};
	srand(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
