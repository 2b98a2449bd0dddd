/* SPDX-License-Identifier: Apache-2.0 */
/* Work in a copy of the process: what it leaves, and that nobody waits for it for ever. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "interpose/platform/clock.h"
#include "interpose/hooks/malloc/process_copy.h"

#define SECOND_NS 1000000000ull

static volatile int ours = 1;
static int children_ended;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void count_child(int number)
{
	(void)number;
	children_ended++;
}

static void write_both(void *shared)
{
	ours = 2;
	*(int *)shared = 3;
}

static void wait_for_lock(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&held);
}

static void crash(void *unused)
{
	(void)unused;
	raise(SIGKILL);
}

static void shared_memory_is_written_ours_is_not(void **state)
{
	int *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
	                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	signal(SIGCHLD, count_child);
	errno = 7;
	assert_true(cuf_in_process_copy(write_both, shared, 20 * SECOND_NS));
	assert_int_equal(errno, 7);
	assert_int_equal(*shared, 3);
	assert_int_equal(ours, 1);
	munmap(shared, sizeof *shared);
}

static void a_lock_that_is_held_is_not_waited_for(void **state)
{
	uint64_t began_ns = cuf_now_ns();

	pthread_mutex_lock(&held);
	assert_false(cuf_in_process_copy(wait_for_lock, NULL, SECOND_NS / 20));
	assert_true(cuf_now_ns() - began_ns >= SECOND_NS / 20);
	pthread_mutex_unlock(&held);
}

static void a_copy_that_dies_has_no_answer(void **state)
{
	assert_false(cuf_in_process_copy(crash, NULL, 20 * SECOND_NS));
}

/* no zombie, no signal: the program's own waits find no child */
static void nothing_is_left(void **state)
{
	assert_int_equal(children_ended, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_memory_is_written_ours_is_not),
		cmocka_unit_test(a_lock_that_is_held_is_not_waited_for),
		cmocka_unit_test(a_copy_that_dies_has_no_answer),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
