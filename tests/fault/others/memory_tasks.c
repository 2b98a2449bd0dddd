/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_tasks own|shared|vfork: tasks that run in this process's memory and are no threads of the
 * C library. They and threads allocate at the same time.
 *   own     tasks with thread-local storage of their own, while threads come and go
 *   shared  a task that runs with the main thread's words: it maps and unmaps, and so does main
 *   vfork   threads whose first allocation is made by their vfork children
 * Prints how many tasks ended badly, and how many blocks had been changed by somebody else.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 4, BLOCKS = 64, STACK_BYTES = 1 << 20, MAP_BYTES = 300000 };

static int changed;

static void check(const unsigned char *block, unsigned char sign)
{
	if (block && *block != sign)
		__atomic_fetch_add(&changed, 1, __ATOMIC_RELAXED);
}

static void churn(long pairs, unsigned char sign)
{
	unsigned char *blocks[BLOCKS] = { 0 };

	for (long i = 0; i < pairs; i++) {
		check(blocks[i % BLOCKS], sign);
		free(blocks[i % BLOCKS]);
		blocks[i % BLOCKS] = malloc(100 + (size_t)i % 900);
		*blocks[i % BLOCKS] = sign;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

static void *thread(void *pairs)
{
	churn((long)(intptr_t)pairs, (unsigned char)(uintptr_t)&pairs);
	return NULL;
}

static void threads_come_and_go(int births, long pairs)
{
	for (int i = 0; i < births; i++) {
		pthread_t threads[2];

		for (int k = 0; k < 2; k++)
			pthread_create(&threads[k], NULL, thread, (void *)(intptr_t)pairs);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
	}
}

static char *new_stack(void)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                   -1, 0);

	return stack + STACK_BYTES;
}

static int ended_badly(pid_t task)
{
	int status = 0;

	return waitpid(task, &status, __WALL) != task || status != 0;
}

/* ---- own ---- */

static int own_task(void *sign)
{
	for (int i = 0; i < 20; i++)
		churn(10000, (unsigned char)(uintptr_t)sign);
	return 0;
}

/* As the C library makes them for its threads; the guards of stack and pointers are the parent's.
 */
static void *new_tls(void)
{
	void *(*allocate)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
	void **tls = allocate ? allocate(NULL) : NULL, **mine = __builtin_thread_pointer();

	if (!tls)
		return NULL;
	tls[0] = tls[2] = tls;
	tls[5] = mine[5];
	tls[6] = mine[6];
	((int *)tls)[6] = 1; /* several threads: the C library must take its locks */
	return tls;
}

static int own(void)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SETTLS | SIGCHLD;
	pid_t tasks[TASKS];
	int bad = 0;

	threads_come_and_go(1, 1); /* or the C library takes no locks yet */
	for (long i = 0; i < TASKS; i++)
		tasks[i] = clone(own_task, new_stack(), flags, (void *)(i + 1), NULL, new_tls(),
		                 NULL);
	threads_come_and_go(200, 10000);
	for (int i = 0; i < TASKS; i++)
		bad += ended_badly(tasks[i]);
	return bad;
}

/* ---- shared ---- */

/* Two system calls, and nothing that the C library keeps for a thread. */
static int map_and_unmap(void *unused)
{
	(void)unused;
	for (int i = 0; i < 5000; i++) {
		char *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
		                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED || munmap(map, MAP_BYTES))
			return 1;
	}
	return 0;
}

static int shared(void)
{
	int bad = 0;

	for (int i = 0; i < 5; i++) {
		pid_t task = clone(map_and_unmap, new_stack(), CLONE_VM | CLONE_FILES | SIGCHLD,
		                   NULL);

		bad += map_and_unmap(NULL);
		bad += ended_badly(task);
	}
	return bad;
}

/* ---- vfork ---- */

static void *vfork_first(void *pairs)
{
	pid_t child = vfork();

	if (!child) {
		char *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
		                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		_exit(map == MAP_FAILED || munmap(map, MAP_BYTES));
	}
	if (ended_badly(child))
		return vfork_first;
	/* more threads begin here, and look for slots of dead ones */
	threads_come_and_go(3, 1000);
	churn((long)(intptr_t)pairs, 7);
	return NULL;
}

static int vforks(void)
{
	int bad = 0;

	for (int i = 0; i < 40; i++) {
		pthread_t threads[TASKS];
		void *failed;

		for (int k = 0; k < TASKS; k++)
			pthread_create(&threads[k], NULL, vfork_first, (void *)3000);
		for (int k = 0; k < TASKS; k++) {
			pthread_join(threads[k], &failed);
			bad += failed != NULL;
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	int bad;

	if (!strcmp(way, "own"))
		bad = own();
	else if (!strcmp(way, "shared"))
		bad = shared();
	else if (!strcmp(way, "vfork"))
		bad = vforks();
	else
		return 2;
	printf("%d tasks ended badly, %d blocks were changed\n", bad, changed);
	return bad || changed;
}
