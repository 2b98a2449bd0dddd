/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates a few thousand blocks in two threads, keeps some, and prints its resident size: `rss
 * BYTES`.
 */
#include <pthread.h>
#include <stdio.h>
#include "tests/victims/host/resident.h"

enum { BLOCKS = 2000 };

static void *allocate(void *unused)
{
	static __thread void *kept[BLOCKS];
	for (unsigned i = 0; i < BLOCKS; i++)
		kept[i] = malloc(16 + i % 500);
	for (unsigned i = 0; i < BLOCKS; i += 2)
		free(kept[i]);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, allocate, NULL))
		return 3;
	allocate(NULL);
	pthread_join(thread, NULL);
	printf("rss %zu\n", resident_bytes());
	return 0;
}
