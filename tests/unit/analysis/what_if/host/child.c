/* SPDX-License-Identifier: Apache-2.0 */
/* A player, given histories that no program would have: it answers, and needs no more than it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "analysis/what_if/host/child.h"
#include "analysis/what_if/host/history.h"

#define MIB (1ull << 20)

static const struct host_setting glibc = { .typed = "", .allocator = "glibc" };

static struct play_answer play(struct play_step *steps, size_t count, uint32_t blocks,
			       uint32_t threads, struct play_limits limits)
{
	struct history history = { .steps = steps, .count = count, .block_count = blocks,
				   .thread_count = threads };
	int fd = history_file(&history);
	struct play_answer answer;

	assert_true(fd >= 0);
	answer = child_play(fd, &glibc, &limits);
	close(fd);
	return answer;
}

static const struct play_limits plain = { 256 * MIB, PLAY_TOUCHED_ALL, 20 };

static void what_stays_is_resident(void **state)
{
	struct play_step steps[] = {
		{ 40 * MIB, 0, 0, PLAY_TAKE, 0 },   { 20 * MIB, 1, 1, PLAY_ZEROED, 0 },
		{ 10 * MIB, 2, 1, PLAY_ALIGNED, 12 }, { 80 * MIB, 0, 0, PLAY_RESIZE, 0 },
		{ 0, 1, 0, PLAY_FREE, 0 },	    { 0, 0, 1, PLAY_THREAD_END, 0 },
	};
	struct play_answer answer = play(steps, 6, 3, 2, plain);

	assert_int_equal(answer.status, PLAY_ENDED);
	assert_in_range(answer.end_bytes, 90 * MIB, 91 * MIB);
	assert_in_range(answer.peak_bytes, 110 * MIB, 111 * MIB);
}

static void large_blocks_are_written_as_far_as_told(void **state)
{
	struct play_step steps[] = { { 100 * MIB, 0, 0, PLAY_TAKE, 0 } };
	struct play_limits limits = plain;

	limits.touched_1024th = PLAY_TOUCHED_ALL / 4;
	assert_in_range(play(steps, 1, 1, 1, limits).end_bytes, 25 * MIB, 26 * MIB);
}

static void a_free_before_its_allocation_leaves_nothing(void **state)
{
	struct play_step steps[] = {
		{ 0, 0, 1, PLAY_FREE, 0 },
		{ 50 * MIB, 0, 0, PLAY_TAKE, 0 },
		{ 0, 0, 0, PLAY_FREE, 0 },
	};
	struct play_answer answer = play(steps, 2, 1, 2, plain);

	assert_int_equal(answer.status, PLAY_ENDED);
	assert_in_range(answer.end_bytes, 0, MIB);
	answer = play(steps, 3, 1, 2, plain); /* freed twice */
	assert_int_equal(answer.status, PLAY_ENDED);
}

static void a_block_taken_twice_does_not_leak(void **state)
{
	struct play_step steps[] = {
		{ 50 * MIB, 0, 0, PLAY_TAKE, 0 },
		{ 60 * MIB, 0, 0, PLAY_TAKE, 0 },
		{ 0, 0, 0, PLAY_FREE, 0 },
	};
	assert_in_range(play(steps, 3, 1, 1, plain).end_bytes, 0, MIB);
}

static void numbers_out_of_range_are_left_out(void **state)
{
	struct play_step steps[] = {
		{ 50 * MIB, 7, 0, PLAY_TAKE, 0 },
		{ 50 * MIB, UINT32_MAX, 60000, PLAY_TAKE, 0 },
		{ MIB, 0, 0, 200, 255 },
	};
	struct play_answer answer = play(steps, 3, 1, 1, plain);

	assert_int_equal(answer.status, PLAY_ENDED);
	assert_in_range(answer.end_bytes, MIB, 2 * MIB);
}

static void more_than_allowed_ends_it(void **state)
{
	enum { BLOCKS = 4000 };
	struct play_step *steps = calloc(BLOCKS, sizeof *steps);
	struct play_step one = { 1ull << 40, 0, 0, PLAY_TAKE, 0 };
	struct play_answer answer;

	for (uint32_t i = 0; i < BLOCKS; i++)
		steps[i] = (struct play_step){ MIB, i, 0, PLAY_TAKE, 0 };
	answer = play(steps, BLOCKS, BLOCKS, 1, plain);
	assert_int_equal(answer.status, PLAY_TOO_LARGE);
	assert_in_range(answer.peak_bytes, 256 * MIB, 280 * MIB);
	assert_int_equal(play(&one, 1, 1, 1, plain).status, PLAY_TOO_LARGE);
	free(steps);
}

static void too_slow_ends_it(void **state)
{
	enum { STEPS = 4 << 20 };
	struct play_step *steps = calloc(STEPS, sizeof *steps);
	struct play_limits limits = plain;

	limits.seconds = 1;
	for (uint32_t i = 0; i < STEPS; i++) /* a change of thread each */
		steps[i] = (struct play_step){ 16, 0, (uint16_t)(i % 2),
					       i % 4 < 2 ? PLAY_TAKE : PLAY_FREE, 0 };
	assert_int_equal(play(steps, STEPS, 1, 2, limits).status, PLAY_NOT_ENDED);
	free(steps);
}

static void a_broken_history_is_refused(void **state)
{
	struct history history = { 0 };
	struct play_answer answer;
	int fd = history_file(&history), ends[2];

	assert_int_equal(child_play(fd, &glibc, &plain).status, PLAY_BROKEN); /* no thread */
	close(fd);
	assert_int_equal(pipe(ends), 0);
	answer = child_play(ends[0], &glibc, &plain);
	assert_int_equal(answer.status, PLAY_BROKEN);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stays_is_resident),
		cmocka_unit_test(large_blocks_are_written_as_far_as_told),
		cmocka_unit_test(a_free_before_its_allocation_leaves_nothing),
		cmocka_unit_test(a_block_taken_twice_does_not_leak),
		cmocka_unit_test(numbers_out_of_range_are_left_out),
		cmocka_unit_test(more_than_allowed_ends_it),
		cmocka_unit_test(too_slow_ends_it),
		cmocka_unit_test(a_broken_history_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
