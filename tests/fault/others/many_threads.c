/* SPDX-License-Identifier: Apache-2.0 */
/* many_threads N PAIRS: N threads that have allocated stay alive. One more makes pairs of malloc and free. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all_live;
static long pairs;

static void pair(size_t bytes)
{
	void *volatile block = malloc(bytes);

	free(block);
}

static void *stay(void *unused)
{
	pair(100000);
	pthread_barrier_wait(&all_live);
	pthread_barrier_wait(&all_live);
	return NULL;
}

static void *work(void *unused)
{
	for (long i = 0; i < pairs; i++)
		pair(100);
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[1]) : 1;
	pthread_t threads[count], worker;
	pthread_attr_t small;

	pairs = argc == 3 ? atol(argv[2]) : 1;
	pthread_barrier_init(&all_live, NULL, (unsigned)count + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, stay, NULL))
			return 2;
	pthread_barrier_wait(&all_live);
	pthread_create(&worker, NULL, work, NULL);
	pthread_join(worker, NULL);
	pthread_barrier_wait(&all_live);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%ld pairs next to %d threads\n", pairs, count);
	return 0;
}
