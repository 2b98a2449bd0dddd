/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_ends hung exit|quick_exit|_exit|main: a thread does not come back from a copy, and a
 * watchdog ends the process. device_ends handler exit|...: the handler of a timer interrupts a copy
 * and ends the process. Prints what it allocated.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

typedef unsigned long long device_pointer;
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(device_pointer *out, size_t bytes);
int cuMemcpyHtoD_v2(device_pointer to, const void *from, size_t bytes);

enum { STATUS = 3, BLOCK_BYTES = 1 << 20 };
static const char *way;
static device_pointer block;

static void end(void)
{
	if (!strcmp(way, "exit"))
		exit(STATUS);
	if (!strcmp(way, "quick_exit"))
		quick_exit(STATUS);
	if (!strcmp(way, "_exit"))
		_exit(STATUS);
}

static void caught(int number) { end(); }

static void *hang(void *unused)
{
	cuMemcpyHtoD_v2(block, NULL, 0);
	return NULL;
}

static void interrupt_copy(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 5000 } };
	signal(SIGALRM, caught);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		cuMemcpyHtoD_v2(block, NULL, BLOCK_BYTES);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *context;
	way = argv[2];
	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&block, BLOCK_BYTES))
		return 2;
	printf("device free %zu\n", ((size_t)16 << 30) - BLOCK_BYTES);
	fflush(stdout);
	if (!strcmp(argv[1], "handler"))
		interrupt_copy();
	if (pthread_create(&thread, NULL, hang, NULL))
		return 2;
	usleep(100000);
	end();
	return STATUS;
}
