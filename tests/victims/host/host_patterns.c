/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_patterns PATTERN: fragments host memory in a way that servers do, and prints what is
 * resident of it. No CUDA. The patterns:
 *   cache     a long-lived index entry for each 63 short-lived tokens
 *   arenas    eight workers, each with a burst of its own and a few results that stay
 *   growing   buffers that grow by realloc from request to request, beside small state
 *   pinned    buffers of 256 KiB to 1 MiB in one thread, and small state between them
 *   passed    blocks of one thread, freed by another, with every eighth kept in a queue
 * It prints "host resident_end BYTES": anonymous memory at its end, less that at its begin.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/victims/host/resident.h"

enum { KIB = 1024, WORKERS = 8, ROUNDS = 12 };

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void *take(size_t bytes) { return memset(malloc(bytes), 1, bytes); }

static void cache(void)
{
	enum { COUNT = 900000 };
	void **blocks = calloc(COUNT, sizeof *blocks);
	unsigned state = 1;

	for (size_t i = 0; i < COUNT; i++)
		blocks[i] = take(16 + next_random(&state) % 112);
	for (size_t i = 0; i < COUNT; i++)
		if (i % 64)
			free(blocks[i]);
	free(blocks);
}

/* The results of a worker outlive it. */
static void *kept[WORKERS][64];
static pthread_barrier_t all_have_worked;

static void *work(void *argument)
{
	enum { COUNT = 12000 };
	size_t self = (size_t)argument;
	void **blocks = calloc(COUNT, sizeof *blocks);
	unsigned state = (unsigned)self + 7;

	for (size_t i = 0; i < COUNT; i++) {
		blocks[i] = take(64 + next_random(&state) % 2048);
		if (i % (COUNT / 64) == 0)
			kept[self][i / (COUNT / 64) % 64] = take(128);
	}
	/* all have their burst at the same time, however fast they are */
	pthread_barrier_wait(&all_have_worked);
	for (size_t i = 0; i < COUNT; i++)
		free(blocks[i]);
	free(blocks);
	return NULL;
}

static void arenas(void)
{
	pthread_t threads[WORKERS];

	pthread_barrier_init(&all_have_worked, NULL, WORKERS + 1);
	for (size_t i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	pthread_barrier_wait(&all_have_worked);
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
}

static void growing(void)
{
	enum { BUFFERS = 24 };
	char *buffers[BUFFERS] = { NULL };
	size_t bytes = 8 * KIB;

	for (size_t round = 0; round < 40; round++, bytes += bytes / 8)
		for (size_t i = 0; i < BUFFERS; i++) {
			buffers[i] = realloc(buffers[i], bytes + i * 512);
			memset(buffers[i], 1, bytes + i * 512);
			take(200); /* state of the request, which stays */
		}
	for (size_t i = 0; i < BUFFERS; i += 2)
		free(buffers[i]);
}

static void pinned(void)
{
	enum { BUFFERS = 64 };
	void *buffers[BUFFERS];
	unsigned state = 3;

	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < BUFFERS; i++) {
			buffers[i] = take((256 + next_random(&state) % 768) * KIB);
			take(1000);
		}
		for (size_t i = 0; i < BUFFERS; i++)
			free(buffers[i]);
	}
}

enum { QUEUE = 4096 };
static void *queue[QUEUE];
static pthread_barrier_t queue_changes;

static void *consume(void *argument)
{
	for (size_t round = 0; round < ROUNDS * 4; round++) {
		pthread_barrier_wait(&queue_changes);
		for (size_t i = 0; i < QUEUE; i++)
			if (i % 8)
				free(queue[i]);
		take(3000);
		pthread_barrier_wait(&queue_changes);
	}
	return argument;
}

static void passed(void)
{
	unsigned state = 5;
	pthread_t consumer;

	pthread_barrier_init(&queue_changes, NULL, 2);
	pthread_create(&consumer, NULL, consume, NULL);
	for (size_t round = 0; round < ROUNDS * 4; round++) {
		for (size_t i = 0; i < QUEUE; i++)
			queue[i] = take(100 + round * 60 + next_random(&state) % 300);
		pthread_barrier_wait(&queue_changes);
		pthread_barrier_wait(&queue_changes);
	}
	pthread_join(consumer, NULL);
}

static const struct pattern {
	const char *name;
	void (*run)(void);
} patterns[] = {
	{ "cache", cache },   { "arenas", arenas }, { "growing", growing },
	{ "pinned", pinned }, { "passed", passed },
};

int main(int argc, char **argv)
{
	size_t before;

	setvbuf(stdout, NULL, _IOLBF, 256);
	free(malloc(1));
	before = resident_anonymous_bytes();
	for (size_t i = 0; argc > 1 && i < sizeof patterns / sizeof *patterns; i++)
		if (!strcmp(argv[1], patterns[i].name)) {
			patterns[i].run();
			printf("host resident_end %zu\n", resident_anonymous_bytes() - before);
			return 0;
		}
	fprintf(stderr, "host_patterns: cache, arenas, growing, pinned or passed\n");
	return 2;
}
