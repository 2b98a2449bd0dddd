/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a refused malloc costs next to many live blocks: refused_malloc BLOCKS. They are of 64 call sites.
 * Prints microseconds of CPU time: of the first refused request, and of the dearest of the next 20.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SITES = 64, BLOCK_BYTES = 64, REFUSALS = 20 };
#define TOO_MANY_BYTES ((size_t)1 << 60)

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static __attribute__((noinline)) void *descend(unsigned depth)
{
	void *block = depth ? descend(depth - 1) : malloc(BLOCK_BYTES);
	__asm__ volatile("" : "+r"(block));
	return block;
}

static double refusal_us(void)
{
	double began = now_us();
	void *volatile block = malloc(TOO_MANY_BYTES);

	return block ? 0 : now_us() - began;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	double first, dearest = 0;

	for (unsigned long i = 0; i < count; i++)
		if (!descend((unsigned)(i % SITES)))
			return 1;
	first = refusal_us();
	for (unsigned i = 0; i < REFUSALS; i++) {
		double us = refusal_us();
		dearest = us > dearest ? us : dearest;
	}
	printf("%.0f %.0f\n", first, dearest);
	return 0;
}
