/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads map and unmap memory at the same time, above some thousand maps that stay. No CUDA.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 16, STAYING = 4000, ROUNDS = 4000 };
#define STAYING_BYTES ((size_t)256 << 10)
#define BYTES ((size_t)1 << 20)

static void map_and_unmap(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || munmap(at, BYTES))
		_Exit(3);
}

static void *churn(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		map_and_unmap();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	/* every second one cannot be written to, so that the kernel does not unite them */
	for (int i = 0; i < STAYING; i++)
		if (mmap(NULL, STAYING_BYTES, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 3;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("host maps anonymous_bytes %zu anonymous_count %d\n", STAYING * STAYING_BYTES,
	       STAYING);
	printf("end state exit 0\n");
	return 0;
}
