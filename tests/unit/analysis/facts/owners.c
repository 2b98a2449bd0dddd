/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners of a device's bytes, and the holes: rows sum to the driver's total whatever the recording
 * contains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define BASE 0x700000000000ull
#define PAGE CUF_PAGE_BYTES

static struct maker *begin(void)
{
	struct maker *m = maker_new(&maker_small);
	maker_device(m, 0, TOTAL);
	for (uint32_t id = 1; id < 9; id++)
		maker_stack(m, id, 0x401000 + id * 256, 2);
	return m;
}

static struct facts *report_at(struct maker *m, enum facts_at at, uint64_t value)
{
	struct facts_options options = { .at = at, .at_value = value };
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, &options, &facts, NULL), 0);
	return facts;
}

static uint64_t row(const struct facts *facts, enum fact_owner kind)
{
	for (size_t i = 0; i < facts->devices[0].owner_count; i++)
		if (facts->devices[0].owners[i].kind == kind)
			return facts->devices[0].owners[i].bytes;
	fail();
	return 0;
}

static void assert_sums(const struct fact_owner_row *rows, size_t count, uint64_t total_bytes)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		if (rows[i].in_sum && rows[i].bytes != CUF_UNKNOWN)
			sum += rows[i].bytes;
	assert_int_equal(sum, total_bytes);
}

static void done(struct maker *m, struct facts *facts)
{
	for (size_t i = 0; i < facts->device_count; i++)
		if (facts->devices[i].total_bytes != CUF_UNKNOWN)
			assert_sums(facts->devices[i].owners, facts->devices[i].owner_count,
			            facts->devices[i].total_bytes);
	facts_free(facts);
	maker_free_all(m);
}

static void test_owners__every_kind_in_its_row(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	struct cuf_incident *i;
	/* two pages, 1 MiB rounding */
	maker_alloc(m, BASE, 3 * MiB, 1);
	/* a page with a hole */
	maker_alloc(m, BASE + 8 * MiB, 1000, 1);
	maker_born(m, CUF_KIND_ARRAY, 0, 0x77, 5 * MiB, 1, 0, CUF_EVENT_ESTIMATED);
	maker_born(m, CUF_KIND_ASYNC, 0, BASE + 1 * GiB, 10 * MiB, 1, 0xa0, 0);
	maker_born(m, CUF_KIND_ASYNC, 0, BASE + 1 * GiB + 14 * MiB, 6 * MiB, 1, 0xa0, 0);
	maker_born(m, CUF_KIND_GRAPH, 0, 1, 64 * MiB, 1, 24 * MiB, 0);
	maker_born(m, CUF_KIND_VMM, 0, 0x1001, 20 * MiB, 1, 0, 0);
	maker_born(m, CUF_KIND_VMM, 0, 0x1002, 6 * MiB, 1, 0, 0);
	/* not the device's */
	maker_born(m, CUF_KIND_VMM, 0, 0x1003, 8 * MiB, 1, 0, CUF_EVENT_HOST_LOCATION);
	maker_born(m, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, BASE + 4 * GiB, 1 * GiB, 1, 0, 0);
	maker_born(m, CUF_KIND_MAPPING, 0, BASE + 4 * GiB, 20 * MiB, 1, 0x1001, 0);
	maker_born(m, CUF_KIND_IMPORTED, 0, BASE + 8 * GiB, 4 * MiB, 1, 0, 0);
	maker_born(m, CUF_KIND_CONTEXT, 0, 9, 300 * MiB, 1, 0, 0);
	maker_born(m, CUF_KIND_MANAGED, 0, BASE + 9 * GiB, 2 * GiB, 1, 0, 0);
	maker_born(m, CUF_KIND_PINNED, CUF_DEVICE_NONE, 0x5000000, 32 * MiB, 1, 0, 0);
	i = maker_fail(m, 0, 15 * GiB, 15 * GiB, TOTAL, 2);
	i->pool_count = 1;
	i->pools[0] = (struct cuf_pool_level){ 0xa0, 96 * MiB, 16 * MiB, UINT64_MAX };
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->devices[0].moment.kind, MOMENT_INCIDENT);
	assert_int_equal(row(facts, OWNER_DEVICE), 3 * MiB + 1000);
	assert_int_equal(row(facts, OWNER_ARRAY), 5 * MiB);
	assert_int_equal(row(facts, OWNER_ASYNC), 16 * MiB);
	assert_int_equal(row(facts, OWNER_GRAPH), 24 * MiB);
	assert_int_equal(row(facts, OWNER_VMM), 26 * MiB);
	assert_int_equal(row(facts, OWNER_IMPORTED), 4 * MiB);
	assert_int_equal(row(facts, OWNER_PAGE_ROUNDING), 1 * MiB + PAGE - 1000);
	assert_int_equal(row(facts, OWNER_POOL_SLACK), 80 * MiB + 40 * MiB);
	assert_int_equal(row(facts, OWNER_CONTEXT), 300 * MiB);
	assert_int_equal(row(facts, OWNER_FREE), 15 * GiB);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK), CUF_UNKNOWN);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES), CUF_UNKNOWN);
	assert_int_equal(row(facts, OWNER_MANAGED), 2 * GiB);
	assert_int_equal(row(facts, OWNER_UNEXPLAINED),
	                 GiB - (3 + 5 + 16 + 24 + 26 + 4 + 1 + 2 + 120 + 300) * MiB);
	assert_int_equal(facts->processes[0].host.pinned_bytes, 32 * MiB);
	assert_sums(facts->incidents[0].owners, facts->incidents[0].owner_count, TOTAL);
	/* by layer */
	assert_int_equal(facts->incidents[0].largest_free[LAYER_DEVICE].bytes, 15 * GiB);
	assert_string_equal(facts->incidents[0].largest_free[LAYER_DEVICE].words, "upper bound");
	assert_int_equal(facts->incidents[0].largest_free[LAYER_MEASURED].bytes, CUF_UNKNOWN);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_PAGE].bytes, PAGE - 1024);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_POOL].bytes, 4 * MiB);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_VMM].bytes, 1 * GiB - 20 * MiB);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_SEGMENT].bytes, CUF_UNKNOWN);
	assert_int_equal(facts->devices[0].fragmentation.vmm_held_bytes, 26 * MiB);
	assert_int_equal(facts->devices[0].fragmentation.vmm_unmapped_bytes, 6 * MiB);
	/* 15 GiB free + holes in pages + 120 MiB of slack */
	assert_int_equal(facts->incidents[0].packed_bytes,
	                 15 * GiB + 1 * MiB + PAGE - 1000 + 120 * MiB);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_YES);
	done(m, facts);
}

/* A checkerboard: every second small block freed. The largest hole is known to the byte. */
static void test_holes__checkerboard(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct fact_fragmentation *f;
	for (unsigned i = 0; i < 512; i++) /* 256 KiB each: eight to a page, 64 pages */
		maker_alloc(m, BASE + i * 256 * 1024ull, 256 * 1024, 1 + i % 2);
	for (unsigned i = 0; i < 512; i += 2)
		maker_free(m, BASE + i * 256 * 1024ull);
	maker_free(m, BASE + 3 * 256 * 1024ull); /* one hole of three blocks */
	maker_fail(m, 0, 1 * MiB, 0, TOTAL, 2);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	f = &facts->devices[0].fragmentation;
	assert_int_equal(f->pages, 64);
	assert_int_equal(f->pages_partial, 64);
	assert_int_equal(f->pages_sparse, 0);
	assert_int_equal(f->page_largest_hole_bytes, 3 * 256 * 1024);
	assert_int_equal(f->page_free_bytes, 257 * 256 * 1024ull);
	assert_int_equal(f->hole_count[9], 254);
	assert_int_equal(f->hole_count[10], 1);
	assert_int_equal(f->pin_count, 1);
	assert_int_equal(f->pins[0].stack.id, 2);
	assert_int_equal(f->pins[0].stack.depth, 2);
	assert_int_equal(f->pins[0].pages, 64);
	assert_int_equal(f->pins[0].count, 255);
	assert_int_equal(f->pins[0].open_bytes, 257 * 256 * 1024ull);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_YES);
	done(m, facts);
}

static void test_holes__edges_of_pages_and_tails_count(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	/* hole before it: 700 KiB, behind: the rest */
	maker_alloc(m, BASE + 700 * 1024, 100, 1);
	maker_alloc(m, BASE + 4 * MiB, 5 * MiB, 2);          /* tail of 1 MiB in its third page */
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(facts->devices[0].fragmentation.pages, 2);
	assert_int_equal(facts->devices[0].fragmentation.pages_sparse, 1);
	assert_int_equal(facts->devices[0].fragmentation.page_largest_hole_bytes,
	                 PAGE - 700 * 1024 - 512);
	assert_int_equal(facts->devices[0].fragmentation.page_free_bytes, PAGE - 100 + 1 * MiB);
	done(m, facts);
}

static void test_holes__no_blocks_is_unknown_whole_pages_are_zero(void **state)
{
	struct maker *m = begin();
	struct facts *facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(facts->devices[0].largest_free[LAYER_PAGE].bytes, CUF_UNKNOWN);
	assert_int_equal(facts->devices[0].largest_free[LAYER_POOL].bytes, CUF_UNKNOWN);
	assert_int_equal(facts->devices[0].largest_free[LAYER_VMM].bytes, CUF_UNKNOWN);
	facts_free(facts);
	maker_alloc(m, BASE, 4 * MiB, 1);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(facts->devices[0].largest_free[LAYER_PAGE].bytes, 0);
	done(m, facts);
}

static void test_owners__does_not_fit_even_if_packed(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	maker_alloc(m, BASE, 10 * GiB, 1);
	maker_fail(m, 0, 7 * GiB, 6 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_ABORT, 6);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_NO);
	facts_free(facts);
	/* its blocks may be half empty inside */
	maker_module(m, 1, 0x400000, 0x500000, "/usr/lib/libc10_cuda.so");
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_CANNOT_TELL);
	done(m, facts);
}

/* The driver's figure is old, missing, or less than the recorded blocks: rows still sum. */
static void test_owners__always_sum(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	maker_alloc(m, BASE, 4 * GiB, 1);
	facts = report_at(m, FACTS_AT_NOW, 0); /* never asked */
	assert_int_equal(row(facts, OWNER_FREE), CUF_UNKNOWN);
	assert_int_equal(row(facts, OWNER_UNEXPLAINED), 12 * GiB);
	assert_sums(facts->devices[0].owners, facts->devices[0].owner_count, TOTAL);
	facts_free(facts);
	maker_free_memory(m, 0, 11 * GiB, TOTAL);
	maker_alloc(m, BASE + 8 * GiB, 2 * GiB, 1); /* since it was asked */
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(row(facts, OWNER_FREE), 9 * GiB);
	assert_int_equal(facts->devices[0].owners[facts->devices[0].owner_count - 2].basis,
	                 BASIS_ESTIMATED);
	assert_int_equal(row(facts, OWNER_UNEXPLAINED), 1 * GiB);
	assert_sums(facts->devices[0].owners, facts->devices[0].owner_count, TOTAL);
	facts_free(facts);
	maker_alloc(m, BASE + 20 * GiB, 20 * GiB, 1); /* more than there is */
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(row(facts, OWNER_DEVICE), 26 * GiB);
	done(m, facts);
}

/* Exit handlers free everything: the report is of the moment before. */
static void test_moment__the_end_is_before_exit_handlers(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	maker_alloc(m, BASE, 1 * GiB, 1);
	((struct cuf_device *)maker_section(m, CUF_SEC_DEVICES))->end_free_bytes = 14 * GiB;
	maker_end(m, CUF_END_EXIT, 0);
	maker_free(m, BASE);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->devices[0].moment.kind, MOMENT_END);
	assert_int_equal(row(facts, OWNER_DEVICE), 1 * GiB);
	assert_int_equal(row(facts, OWNER_FREE), 14 * GiB);
	assert_int_equal(facts->leaks[0].bytes, 1 * GiB);
	facts_free(facts);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(row(facts, OWNER_DEVICE), 0);
	done(m, facts);
}

static void test_moment__any_time_and_the_peak(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t between_ns;
	maker_alloc(m, BASE, 1 * GiB, 1);
	between_ns = m->now_ns - MAKER_START_NS;
	maker_alloc(m, BASE + 2 * GiB, 2 * GiB, 1);
	maker_free(m, BASE);
	maker_alloc(m, BASE + 8 * GiB, 100 * MiB, 1);
	maker_end(m, CUF_END_EXIT, 0);
	facts = report_at(m, FACTS_AT_TIME, between_ns);
	assert_int_equal(row(facts, OWNER_DEVICE), 1 * GiB);
	facts_free(facts);
	facts = report_at(m, FACTS_AT_PEAK, 0);
	assert_int_equal(row(facts, OWNER_DEVICE), 3 * GiB);
	assert_int_equal(facts->devices[0].peak_bytes, 3 * GiB);
	facts_free(facts);
	facts = report_at(m, FACTS_AT_TIME, 0);
	assert_int_equal(row(facts, OWNER_DEVICE), 0);
	done(m, facts);
}

/* The events since the incident were overwritten: the incident's figures stand in, marked as
 * such. */
static void test_moment__a_lost_past_is_estimated(void **state)
{
	static const struct maker_plan plan = { 8, 1024, 4, 1024, 4096, 64, 256, 8, 8, 0, 0 };
	struct maker *m = maker_new(&plan);
	struct cuf_incident *i;
	struct facts *facts;
	maker_device(m, 0, TOTAL);
	maker_alloc(m, BASE, 5 * GiB + 1000, 1);
	i = maker_fail(m, 0, 12 * GiB, 10 * GiB, TOTAL, 2);
	i->page_hole_bytes = PAGE - 1000;
	i->page_free_bytes = PAGE - 1000;
	maker_free(m, BASE);
	for (unsigned n = 0; n < 1000; n++)
		maker_alloc(m, BASE + 6 * GiB + n * 512, 512, 3);
	facts = report_at(m, FACTS_AT_INCIDENT, 1);
	assert_int_equal(facts->devices[0].moment.basis, BASIS_ESTIMATED);
	assert_int_equal(row(facts, OWNER_DEVICE), 5 * GiB + 1000);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_PAGE].bytes, PAGE - 1000);
	assert_false(facts->coverage.complete);
	assert_non_null(strstr(facts->coverage.blind[0].text, "were overwritten"));
	done(m, facts);
}

static void test_coverage__refused_walks_of_python_are_told(void **state)
{
	struct maker *m = maker_new(&maker_small);
	struct facts *facts;
	maker_device(m, 0, TOTAL);
	m->h->python_stops[0] = 1416;
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_false(facts->coverage.blind[0].minor);
	assert_non_null(strstr(facts->coverage.blind[0].text, "1,416 walks of Python frames"));
	done(m, facts);
}

static void test_coverage__blocks_without_room_are_told(void **state)
{
	struct maker *m = maker_new(&maker_small);
	struct facts *facts;
	maker_device(m, 0, TOTAL);
	maker_alloc(m, BASE, 1 * GiB, 1);
	m->h->lost[CUF_LOST_LEDGER] = 33;
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_false(facts->coverage.complete);
	assert_non_null(strstr(facts->coverage.blind[0].text, "33 live blocks were dropped"));
	done(m, facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners__every_kind_in_its_row),
		cmocka_unit_test(test_holes__checkerboard),
		cmocka_unit_test(test_holes__edges_of_pages_and_tails_count),
		cmocka_unit_test(test_holes__no_blocks_is_unknown_whole_pages_are_zero),
		cmocka_unit_test(test_owners__does_not_fit_even_if_packed),
		cmocka_unit_test(test_owners__always_sum),
		cmocka_unit_test(test_moment__the_end_is_before_exit_handlers),
		cmocka_unit_test(test_moment__any_time_and_the_peak),
		cmocka_unit_test(test_moment__a_lost_past_is_estimated),
		cmocka_unit_test(test_coverage__blocks_without_room_are_told),
		cmocka_unit_test(test_coverage__refused_walks_of_python_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
