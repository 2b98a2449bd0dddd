/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churns SECONDS: two threads allocate and free at full speed from many depths, and further threads
 * start and end. The live size stays the same. Prints the resident size after a quarter of the
 * time, its maximum since, both without files, and the number of pairs: `rss BYTES most BYTES
 * anonymous BYTES most_anonymous BYTES pairs N threads N`.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include "tests/victims/host/resident.h"

enum { THREADS = 2, SLOTS = 4096, DEPTHS = 24 };

static int stop;

struct worker { uint64_t random, pairs; void *slots[SLOTS]; };
static struct worker workers[THREADS];

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static __attribute__((noinline)) void *allocate(unsigned depth, size_t bytes)
{
	void *volatile p = depth ? allocate(depth - 1, bytes) : malloc(bytes);
	return p;
}

/* Every slot is of one size for good, so that the allocator does not grow by itself. */
static void replace(struct worker *w)
{
	unsigned slot = (unsigned)(next(&w->random) % SLOTS);
	free(w->slots[slot]);
	w->slots[slot] = allocate((unsigned)(next(&w->random) % DEPTHS), 16 + slot % 64 * 8);
	w->pairs++;
}

static void *work(void *own)
{
	struct worker *w = own;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		replace(w);
	return NULL;
}

static void *come_and_go(void *unused)
{
	for (unsigned i = 0; i < 20; i++)
		free(allocate(i, 100));
	return NULL;
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 5, start = now_s();
	size_t first = 0, most = 0, first_anonymous = 0, most_anonymous = 0;
	unsigned threads = 0;
	pthread_t working[THREADS], guest;
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].random = i + 1;
		pthread_create(&working[i], NULL, work, &workers[i]);
	}
	while (now_s() - start < seconds) {
		size_t rss, anonymous;
		if (pthread_create(&guest, NULL, come_and_go, NULL))
			return 3;
		pthread_join(guest, NULL);
		threads++;
		usleep(10000);
		rss = resident_bytes();
		anonymous = resident_anonymous_bytes();
		if (now_s() - start < seconds / 4) {
			first = rss;
			first_anonymous = anonymous;
			continue;
		}
		most = rss > most ? rss : most;
		most_anonymous = anonymous > most_anonymous ? anonymous : most_anonymous;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(working[i], NULL);
	printf("rss %zu most %zu anonymous %zu most_anonymous %zu pairs %lu threads %u\n", first,
	       most, first_anonymous, most_anonymous,
	       (unsigned long)(workers[0].pairs + workers[1].pairs), threads);
	return 0;
}
