/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator_ends jump|handler MICROSECONDS: a timer interrupts a loop of malloc and free. jump: the
 * handler leaves it by siglongjmp, as interpreters do at Ctrl-C, then exit. handler: a clean-up
 * deep inside the handler calls exit. Either way malloc's lock may be held for ever. Another thread
 * exists, so locks are taken.
 * allocator_ends holes COUNT: half of so many blocks are free at the end.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SLOTS = 64, DEPTH = 80, STATUS = 3, BLOCK_BYTES = 160 };
static sigjmp_buf back;
static int jumps;

__attribute__((noinline)) static int clean_up(int depth)
{
	if (!depth)
		exit(STATUS);
	int result = clean_up(depth - 1);
	__asm__ volatile("" : "+r"(result));
	return result;
}

static void caught(int number)
{
	if (jumps)
		siglongjmp(back, 1);
	clean_up(DEPTH);
}

static void *idle(void *unused)
{
	for (;;)
		pause();
}

static void start_thread(void)
{
	pthread_t thread;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pthread_create(&thread, NULL, idle, NULL))
		exit(2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void allocate_until(long microseconds)
{
	struct itimerval timer = { { 0, 0 }, { 0, microseconds } };
	void *volatile blocks[SLOTS] = { 0 };
	signal(SIGALRM, caught);
	if (sigsetjmp(back, 1))
		return;
	setitimer(ITIMER_REAL, &timer, NULL);
	for (unsigned i = 0;; i++) {
		free(blocks[i % SLOTS]);
		blocks[i % SLOTS] = malloc(2000 + i * 7919 % 40000);
	}
}

static void make_holes(long count)
{
	unsigned long seed = 12345;
	void **blocks = malloc((size_t)count * sizeof *blocks);
	for (long i = 0; i < count; i++)
		blocks[i] = malloc(BLOCK_BYTES);
	/* in a disorderly sequence, so that a list of holes leads all over the heap */
	for (long i = count / 2 - 1; i > 0; i--) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		long other = (long)(seed % (unsigned long)i);
		void *block = blocks[2 * i];
		blocks[2 * i] = blocks[2 * other];
		blocks[2 * other] = block;
	}
	for (long i = 0; i < count; i += 2)
		free(blocks[i]);
}

int main(int argc, char **argv)
{
	puts(argv[1]);
	fflush(stdout);
	if (!strcmp(argv[1], "holes")) {
		make_holes(atol(argv[2]));
		exit(STATUS);
	}
	jumps = !strcmp(argv[1], "jump");
	start_thread();
	allocate_until(atol(argv[2]));
	exit(STATUS);
}
