/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack tables that fill up: room that small blocks leave is used for large ones, also at a place
 * that small ones took before.
 */
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/stack/stacks.h"
#include "interpose/process/thread.h"

enum { BITS = 16, LARGE_ONES = 500 };

static bool large;
static uint32_t id;
static struct cuf_thread_state *thread;

/* As a hook that was called by the program. */
static __attribute__((noinline)) void hook(void)
{
	id = cuf_stack_capture_caller(&thread->stack, __builtin_frame_address(0), large);
	__asm__ volatile("");
}

/* Two places to call from, which the differing asm keeps apart. */
static __attribute__((noinline)) void walk(unsigned path, unsigned steps)
{
	if (!steps) {
		hook();
		__asm__ volatile("# here");
	} else if (path & 1) {
		walk(path >> 1, steps - 1);
		__asm__ volatile("# right");
	} else {
		walk(path >> 1, steps - 1);
		__asm__ volatile("# left");
	}
}

/* Each path is a stack of its own. */
static __attribute__((noinline)) uint32_t capture(unsigned path, bool of_large)
{
	large = of_large;
	walk(path, BITS);
	return id;
}

static unsigned depth_of(uint32_t stack)
{
	return stack ? cuf_recording.stacks[stack - 1].depth : 0;
}

/* The first path from here on whose stack has a place, by chance, and no frames. All from one line:
 * another one would be another stack. */
static __attribute__((noinline)) unsigned first_without(unsigned path, bool of_large)
{
	uint32_t stack;

	while (!(stack = capture(path, of_large)) || depth_of(stack))
		path++;
	return path;
}

/* As deep as in first_without, so what had no room there has none here. */
static __attribute__((noinline)) void capture_each(unsigned path, uint32_t ids[4],
						   unsigned depths[4])
{
	static const bool sizes[] = { false, false, true, false };

	for (volatile unsigned i = 0; i < 4; i++) {
		ids[i] = capture(path, sizes[i]);
		depths[i] = depth_of(ids[i]);
	}
}

static void small_ones_leave_room(void **state)
{
	const struct cuf_header *h = cuf_recording.header;
	uint32_t ids[4];
	unsigned depths[4], path, next;
	(void)state;
	thread = cuf_thread_enter();
	assert_non_null(thread);
	path = next = first_without(0, false);
	assert_in_range(h->lost[CUF_LOST_STACKS], 1, path / 100 + 1);
	assert_in_range(h->frames_used, cuf_recording.frame_count / 8 * 5,
	                cuf_recording.frame_count / 4 * 3);

	do
		capture_each(next++, ids, depths);
	while (!ids[0]);
	for (unsigned i = 0; i < 4; i++) { /* without frames too, it is one call site */
		assert_int_equal(ids[i], ids[0]);
		assert_int_equal(depths[i] > BITS, i >= 2);
	}
	assert_true(first_without(path, true) - path > path / 4);
	assert_true(h->frames_used <= cuf_recording.frame_count);
	cuf_thread_leave(thread);
}

/* Small blocks have many more stacks than the index has places. */
static void large_ones_find_a_place(void **state)
{
	(void)state;
	thread = cuf_thread_enter();
	assert_non_null(thread);
	for (volatile unsigned path = 0; path < 1u << BITS; path++)
		capture(path, false);
	assert_int_equal(capture((1u << BITS) - 1, false), 0);
	for (volatile unsigned path = 0; path < LARGE_ONES; path++)
		assert_true(depth_of(capture(path, true)) > BITS);
	cuf_thread_leave(thread);
}

/* Sampled mode fills a near part of the index first, full mode does not. Each test has a recording of its own. */
static int run(const char *options, const struct CMUnitTest test)
{
	const struct CMUnitTest tests[] = { test };
	char directory[] = "/tmp/cuflight-stacks-XXXXXX";
	int failed, status = 1;
	pid_t child = fork();

	if (child)
		return child < 0 || waitpid(child, &status, 0) != child || status;
	if (!mkdtemp(directory))
		return 1;
	fixture_start(options, directory);
	failed = cmocka_run_group_tests_name(options, tests, NULL, NULL);
	unlink(cuf_recording.path);
	rmdir(directory);
	exit(failed);
}

int main(void)
{
	const struct CMUnitTest room = cmocka_unit_test(small_ones_leave_room);
	const struct CMUnitTest place = cmocka_unit_test(large_ones_find_a_place);

	return run("size=16MiB:host=full", room) | run("size=16MiB", room) |
	       run("size=16MiB:host=full", place) | run("size=16MiB", place);
}
