/* SPDX-License-Identifier: Apache-2.0 */
/* A clean program for the sanitizers: threads, every way to allocate, files, strings. It prints a
 * sum. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *number)
{
	uintptr_t sum = 0;

	for (unsigned i = 1; i < 500; i++) {
		char *block = malloc(i), *grown;
		memset(block, (int)i, i);
		grown = realloc(block, 2 * i);
		sum += (unsigned char)grown[i - 1];
		free(grown);
		free(calloc(i, 3));
		free(aligned_alloc(64, 64 * (size_t)i));
	}
	return (void *)(sum + (uintptr_t)number);
}

int main(void)
{
	pthread_t threads[4];
	uintptr_t sum = 0;
	char *text = strdup("sum");

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (unsigned i = 0; i < 4; i++) {
		void *part;
		pthread_join(threads[i], &part);
		sum += (uintptr_t)part;
	}
	printf("%s %lu\n", text, (unsigned long)sum);
	free(text);
	return 0;
}
