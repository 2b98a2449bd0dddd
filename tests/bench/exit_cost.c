/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_cost BLOCKS THREADS [LIMIT_FILE USAGE_FILE LEFT_KIB]: holds so many blocks, made by so many
 * threads that stay, fills its control group if it is told to, prints the time and the CPU time so
 * far in nanoseconds, and calls exit(0). Who waits for it knows what the exit took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK_BYTES = 100, LARGE = 4 << 20, PAGE = 4096 };
static long blocks_each;
static pthread_barrier_t all_are_done;

static void allocate(void)
{
	for (long i = 0; i < blocks_each; i++)
		memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
}

static __attribute__((noreturn)) void *run(void *unused)
{
	allocate();
	pthread_barrier_wait(&all_are_done);
	for (;;)
		pause();
}

static long long number_in(const char *path)
{
	long long number = 0;
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%lld", &number) != 1)
		exit(2);
	fclose(file);
	return number;
}

static void fill_group(char **argv)
{
	long long limit = number_in(argv[0]), left = atoll(argv[2]) << 10, room;
	while ((room = limit - number_in(argv[1]) - left) > 0) {
		size_t bytes = room > LARGE ? LARGE : PAGE;
		memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
		       bytes);
	}
}

static long long now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int main(int argc, char **argv)
{
	long threads = atol(argv[2]);
	blocks_each = atol(argv[1]) / threads;
	pthread_barrier_init(&all_are_done, NULL, (unsigned)threads);
	for (long i = 1; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, run, NULL))
			return 2;
	}
	allocate();
	pthread_barrier_wait(&all_are_done);
	if (argc > 5)
		fill_group(argv + 3);
	printf("%lld %lld\n", now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	exit(0);
}
