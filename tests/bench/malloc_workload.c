/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc path under load: malloc_workload THREADS CALLS [LIVE]. Each thread descends about 20
 * frames along one of thousands of paths (few of them often), makes 4 calls there, and begins
 * again. A call frees or resizes a random one of LIVE slots, or fills it when it is empty. 60 % of
 * the sizes are at most 64 bytes, 0.3 % above 64 KiB. Prints CPU nanoseconds of one pair of an
 * allocation and a free (a realloc counts as both), and the CPU seconds of the loop.
 *
 * Built twice, with and without frame pointers. The functions differ in frame size and in the
 * registers they save, so that frames are where real ones are.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	THREADS_MAX = 64,
	CALLS_PER_DESCENT = 4,
	DEPTH_MIN = 10,
	DEPTH_SPREAD = 13,
	PATH_BITS = 13,
	LIVE_DEFAULT = 20000
};

struct worker {
	uint64_t random;
	uint64_t halves;    /* allocations and frees done */
	uint64_t calls;
	void **slots;
	uint32_t live;
	pthread_t thread;
};

static uint64_t draw(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	return w->random ^= w->random << 17;
}

/* Sizes recur, as in real programs. */
static size_t draw_bytes(struct worker *w)
{
	static const struct {
		uint32_t below, first, step, steps;
	} mix[] = {
		{ 600, 8, 8, 8 },        { 880, 80, 16, 28 },       { 970, 640, 128, 28 },
		{ 997, 4096, 4096, 16 }, { 1000, 65536, 32768, 8 },
	};
	uint64_t r = draw(w);
	uint32_t pick = (uint32_t)(r % 1000), i = 0;

	while (pick >= mix[i].below)
		i++;
	return mix[i].first + (size_t)mix[i].step * ((r >> 32) % mix[i].steps);
}

static __attribute__((noinline)) void use_slot(struct worker *w)
{
	void **slot = &w->slots[(draw(w) >> 20) % w->live], *block = *slot;

	if (!block) {
		size_t bytes = draw_bytes(w);
		block = (w->random & 15) == 3 ? calloc(1, bytes) : malloc(bytes);
	} else if ((draw(w) & 15) == 0) {
		block = realloc(block, draw_bytes(w));
		w->halves++;
	} else {
		free(block);
		*slot = NULL;
		w->halves++;
		return;
	}
	if (!block)
		abort();
	*(volatile char *)block = 1;
	*slot = block;
	w->halves++;
}

typedef void level(struct worker *w, uint32_t path, int depth);
static level level0, level1, level2, level3, level4, level5, level6, level7;

/* One frame: PAD bytes of its own, then one of four others. The empty asm keeps the call from
 * becoming a jump. */
#define DESCEND(next, pad) next(w, path * 2654435761u + (pad), depth - 1); __asm__ volatile("" ::: "memory"); break
#define LEVEL(self, pad, a, b, c, d)                                                          \
	static __attribute__((noinline)) void self(struct worker *w, uint32_t path, int depth) \
	{                                                                                     \
		volatile char own[16 + (pad)];                                                   \
		own[0] = (char)depth;                                                            \
		if (depth <= 0)                                                                  \
			_Pragma("GCC unroll 1") /* one place, not four: four times as many stacks */ \
			for (int i = 0; i < CALLS_PER_DESCENT; i++)                               \
				use_slot(w);                                                      \
		else                                                                             \
			switch (path >> 28 & 3) {                                                 \
			case 0: DESCEND(a, pad);                                                  \
			case 1: DESCEND(b, pad);                                                  \
			case 2: DESCEND(c, pad);                                                  \
			default: DESCEND(d, pad);                                                 \
			}                                                                        \
		own[1] = own[0];                                                                 \
	}
LEVEL(level0, 0, level1, level2, level3, level4)
LEVEL(level1, 8, level2, level3, level4, level5)
LEVEL(level2, 16, level3, level4, level5, level6)
LEVEL(level3, 24, level4, level5, level6, level7)
LEVEL(level4, 32, level5, level6, level7, level0)
LEVEL(level5, 40, level6, level7, level0, level1)
LEVEL(level6, 48, level7, level0, level1, level2)
LEVEL(level7, 56, level0, level1, level2, level3)

static void *work(void *own)
{
	struct worker *w = own;

	for (uint64_t i = 0; i < w->calls / CALLS_PER_DESCENT; i++) {
		uint64_t r = draw(w);
		/* half of the descents along less than 2^6 paths */
		uint32_t bits = (uint32_t)((r >> 40) % PATH_BITS);
		uint32_t path = (uint32_t)(r >> 8) & ((1u << bits) - 1);
		level0(w, path * 0x9E3779B1u, DEPTH_MIN + (int)(path % DEPTH_SPREAD));
	}
	return NULL;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	uint64_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, halves = 0;
	double seconds;

	if (threads < 1 || threads > THREADS_MAX || !calls) {
		fprintf(stderr, "usage: malloc_workload THREADS CALLS [LIVE=%d]\n", LIVE_DEFAULT);
		return 2;
	}
	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		w->random = 88172645463325252ull + (uint64_t)i * 7919;
		w->live = argc > 3 ? (uint32_t)atoi(argv[3]) : LIVE_DEFAULT;
		w->slots = calloc(w->live, sizeof *w->slots);
		w->calls = calls / (uint64_t)threads;
	}
	seconds = cpu_seconds();
	for (int i = 1; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	work(&workers[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	seconds = cpu_seconds() - seconds;
	for (int i = 0; i < threads; i++)
		halves += workers[i].halves;
	printf("%.2f %.3f\n", seconds * 1e9 / ((double)halves / 2), seconds);
	return 0;
}
