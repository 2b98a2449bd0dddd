/* SPDX-License-Identifier: Apache-2.0 */
/* Work on a stack of its own: large, nested deeper than stacks are kept, in many threads. */
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include "tests/unit/fixtures/recorder.h"
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "interpose/platform/side_stack.h"

enum { LARGE_BYTES = 48 * 1024, DEPTH = 7, THREADS = 8, ROUNDS = 2000 };

struct work {
	unsigned depth, done;
	uintptr_t caller;
};

static void fill(void *argument)
{
	struct work *work = argument;
	volatile unsigned char room[LARGE_BYTES];
	for (unsigned i = 0; i < sizeof room; i += 64)
		room[i] = (unsigned char)(i / 64 + work->depth);
	/* not right below the caller's frame */
	assert_true(work->caller - (uintptr_t)room > LARGE_BYTES + 8192);
	if (work->depth) {
		struct work inner = { work->depth - 1, 0, (uintptr_t)__builtin_frame_address(0) };
		assert_true(cuf_on_side_stack(fill, &inner));
		work->done = inner.done;
	}
	for (unsigned i = 0; i < sizeof room; i += 64)
		assert_int_equal(room[i], (unsigned char)(i / 64 + work->depth));
	work->done++;
}

static void test_side_stack__nests_deeper_than_stacks_are_kept(void **state)
{
	struct work work = { DEPTH, 0, (uintptr_t)__builtin_frame_address(0) };
	errno = 77;
	assert_true(cuf_on_side_stack(fill, &work));
	assert_int_equal(work.done, DEPTH + 1);
	assert_int_equal(errno, 77);
}

static void add_one(void *count) { ++*(unsigned *)count; }

static void *add_many(void *count)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		cuf_on_side_stack(add_one, count);
	return NULL;
}

static void test_side_stack__threads_use_different_ones(void **state)
{
	pthread_t threads[THREADS];
	unsigned counts[THREADS] = { 0 };
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, add_many, &counts[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(counts[i], ROUNDS);
	}
}

/* In strict mode the kernel kills for every call but read, write and exit. */
static void test_side_stack__is_taken_without_a_system_call(void **state)
{
	unsigned count = 0;
	int status = -1;
	pid_t child;

	cuf_on_side_stack(add_one, &count);
	child = fork();
	if (!child) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			_exit(1);
		for (unsigned i = 0; i < ROUNDS; i++)
			cuf_on_side_stack(add_one, &count);
		syscall(SYS_exit, count != ROUNDS + 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_side_stack__nests_deeper_than_stacks_are_kept),
		cmocka_unit_test(test_side_stack__threads_use_different_ones),
		cmocka_unit_test(test_side_stack__is_taken_without_a_system_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
