/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_processes WAY: allocates while threads end and processes begin in every possible way, and
 * prints how often (host_ways.h). Children that have their own recording print theirs.
 */
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "tests/victims/host/host_ways.h"

extern char **environ;

/* ---- threads that end ---- */

static pthread_key_t key;

/* Comes back three times: libc calls destructors until nothing is set, or four times. */
static void late(void *block)
{
	static __thread unsigned rounds;
	free(block);
	for (unsigned i = 0; i < 5; i++)
		pair(SIZE(1));
	if (++rounds < 3)
		pthread_setspecific(key, keep(SIZE(2)));
}

static void *with_destructor(void *unused)
{
	pthread_setspecific(key, keep(SIZE(2)));
	return NULL;
}

static int by_destructors(void)
{
	say_process();
	pthread_key_create(&key, late);
	for (unsigned i = 0; i < 50; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, with_destructor, NULL);
		pthread_join(thread, NULL);
	}
	say_size(SIZE(1), 750, 750, -1);
	say_size(SIZE(2), 150, 150, -1);
	return 0;
}

static void *cancelled(void *ready)
{
	void *block = keep(SIZE(3));
	pthread_cleanup_push(free, block);
	__atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	pthread_cleanup_pop(1);
	return NULL;
}

static int by_cancel(void)
{
	say_process();
	for (unsigned i = 0; i < 50; i++) {
		pthread_t thread;
		int ready = 0;
		pthread_create(&thread, NULL, cancelled, &ready);
		while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
			sched_yield();
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	say_size(SIZE(3), 50, 50, -1);
	return 0;
}

/* ---- processes that begin ---- */

enum { CHURNERS = 3, CHILDREN = 12 };
static int stop;

static void *churn(void *count)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pair(SIZE(4));
		++*(unsigned *)count;
	}
	return NULL;
}

static int wait_for(pid_t child)
{
	int status = -1;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

/* The child of a program whose other threads were anywhere when it was made. */
static void child_of_fork(void)
{
	for (unsigned i = 0; i < 30; i++)
		descend(i % 4, pair, SIZE(5));
	keep(SIZE(6));
	say_process();
	say_size(SIZE(5), 30, 30, -1);
	say_size(SIZE(6), 1, 0, -1);
	say_size(SIZE(4), 0, 0, -1);
	_exit(0);
}

static pid_t plain_fork(void) { return fork(); }

/* As fork, but past libc and its handlers. */
static pid_t raw_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

static int children_of(pid_t (*make)(void), unsigned churners)
{
	unsigned counts[CHURNERS * 64] = { 0 }, pairs = 0;
	pthread_t threads[CHURNERS];
	int failed = 0;
	for (unsigned i = 0; i < churners; i++)
		pthread_create(&threads[i], NULL, churn, &counts[i * 64]);
	for (unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = make();
		if (!child)
			child_of_fork();
		failed |= wait_for(child);
		pair(SIZE(7));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < churners; i++) {
		pthread_join(threads[i], NULL);
		pairs += counts[i * 64];
	}
	say_process();
	say_size(SIZE(4), pairs, pairs, -1);
	say_size(SIZE(7), CHILDREN, CHILDREN, -1);
	say_size(SIZE(6), 0, 0, -1);
	return failed;
}

static int by_fork(void) { return children_of(plain_fork, CHURNERS); }

/* Without other threads: a child that is made so may not take locks that they held. */
static int by_raw_clone(void) { return children_of(raw_clone, 0); }

static int by_vfork(void)
{
	for (volatile unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = vfork();
		if (!child) {
			execlp(i % 2 ? "true" : "/no/such/program", "true", NULL);
			_exit(0);
		}
		if (wait_for(child))
			return 1;
		pair(SIZE(8));
	}
	say_process();
	say_size(SIZE(8), CHILDREN, CHILDREN, -1);
	return 0;
}

static int by_posix_spawn(void)
{
	char *arguments[] = { (char *)"true", NULL };
	for (unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = 0;
		int failed = posix_spawnp(&child, i % 2 ? "true" : "/no/such/program", NULL, NULL,
		                          arguments, environ);
		if ((i % 2) != !failed || (!failed && wait_for(child)))
			return 1;
		pair(SIZE(8));
	}
	say_process();
	say_size(SIZE(8), CHILDREN, CHILDREN, -1);
	return 0;
}

/* A child in our memory, with our thread's storage, while we wait: what it allocates is ours. */
static int in_our_memory(void *unused)
{
	for (unsigned i = 0; i < 10; i++)
		pair(SIZE(9));
	return 0;
}

static int by_clone_vm(void)
{
	size_t bytes = 256 << 10;
	char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < CHILDREN; i++) {
		if (wait_for(clone(in_our_memory, stack + bytes, CLONE_VM | CLONE_VFORK | SIGCHLD,
		                   NULL)))
			return 1;
		pair(SIZE(8));
	}
	say_process();
	say_size(SIZE(9), 10 * CHILDREN, 10 * CHILDREN, -1);
	say_size(SIZE(8), CHILDREN, CHILDREN, -1);
	return 0;
}

/* ---- after main ---- */

static void at_exit(void)
{
	pair(SIZE(10));
	say_process();
	say_size(SIZE(10), 1, 1, -1);
}

static int by_atexit(void) { return atexit(at_exit); }

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{ "destructors", by_destructors },
		{ "cancel", by_cancel },
		{ "fork", by_fork },
		{ "raw_clone", by_raw_clone },
		{ "vfork", by_vfork },
		{ "posix_spawn", by_posix_spawn },
		{ "clone_vm", by_clone_vm },
		{ "atexit", by_atexit },
	};
	return ways_main(argc, argv, ways, sizeof ways / sizeof *ways);
}
