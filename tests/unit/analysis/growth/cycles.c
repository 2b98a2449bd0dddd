/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles of work in the rises and falls of live bytes: how many, where their marks are, and what is
 * no work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analysis/growth/cycles.h"

#define KiB ((int64_t)1 << 10)
#define MiB ((int64_t)1 << 20)

struct program { struct cycles *cycles; uint64_t position; };

static void move(struct program *p, int64_t bytes)
{
	p->position++;
	cycles_feed(p->cycles, bytes, p->position, p->position * 1000);
}

static void serve(struct program *p, unsigned requests, int64_t takes, int64_t keeps)
{
	for (unsigned i = 0; i < requests; i++) {
		move(p, takes);
		move(p, keeps - takes);
	}
}

static void load(struct program *p, unsigned parts, int64_t bytes, int64_t beside)
{
	for (unsigned i = 0; i < parts; i++) {
		move(p, bytes);
		if (beside)
			serve(p, 1, beside, 0);
	}
}

static void assert_cycles(struct program *p, uint64_t wanted)
{
	const struct cycle_mark *marks;
	size_t count;
	uint64_t found = cycles_finish(p->cycles, &marks, &count);
	assert_int_equal(found, wanted);
	assert_int_equal(count, wanted ? wanted + 1 : 0);
	for (size_t i = 1; i < count; i++)
		assert_true(marks[i].position > marks[i - 1].position);
	cycles_free(p->cycles);
}

static void test_cycles__requests_after_a_load_however_small(void **state)
{
	struct program p = { cycles_new(), 0 };
	(void)state;
	load(&p, 100, 400 * MiB, 0);
	serve(&p, 50, 64 * KiB, 0);
	assert_cycles(&p, 50);
}

static void test_cycles__requests_that_keep_more_than_they_give_back(void **state)
{
	struct program p = { cycles_new(), 0 };
	(void)state;
	load(&p, 100, 400 * MiB, 0);
	for (unsigned i = 0; i < 50; i++) {
		serve(&p, 1, 2 * MiB, 0);
		move(&p, 64 * MiB);
	}
	assert_cycles(&p, 50);
}

static void test_cycles__ups_and_downs_beside_a_load_are_no_work(void **state)
{
	struct program p = { cycles_new(), 0 };
	(void)state;
	load(&p, 100, 400 * MiB, 64 * KiB);
	assert_cycles(&p, 0);
}

/* What a failing or a last request takes at the end was not gained by what came before it. */
static void test_cycles__one_large_block_after_small_requests(void **state)
{
	struct program p = { cycles_new(), 0 };
	(void)state;
	serve(&p, 50, 64 * KiB, 0);
	move(&p, 40000 * MiB);
	assert_cycles(&p, 50);
}

static void test_cycles__seven_are_not_enough(void **state)
{
	struct program p = { cycles_new(), 0 };
	(void)state;
	move(&p, 400 * MiB);
	serve(&p, 7, 64 * KiB, 0);
	assert_cycles(&p, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cycles__requests_after_a_load_however_small),
		cmocka_unit_test(test_cycles__requests_that_keep_more_than_they_give_back),
		cmocka_unit_test(test_cycles__ups_and_downs_beside_a_load_are_no_work),
		cmocka_unit_test(test_cycles__one_large_block_after_small_requests),
		cmocka_unit_test(test_cycles__seven_are_not_enough),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
