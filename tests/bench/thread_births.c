/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_births COUNT: threads one after the other, each with 10 allocations and frees. Prints CPU
 * microseconds a thread. On one core: migration costs more than what is measured.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *live_briefly(void *none)
{
	for (int i = 0; i < 10; i++) {
		volatile char *p = malloc(64 + (size_t)i);
		if (!p)
			abort();
		*p = 1;
		free((void *)p);
	}
	return none;
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 3000;
	cpu_set_t one;
	double began;

	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	began = cpu_us();
	for (int i = 0; i < count; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, live_briefly, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	printf("%.2f\n", (cpu_us() - began) / count);
	return 0;
}
