/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one stack costs: unwinder_cost [DEPTH=23] [STACKS=200000] [METHOD]. Compares the walker with
 * libunwind's unw_backtrace and glibc's backtrace(), on functions without frame pointers. Prints
 * CPU nanoseconds a stack, medians of 9 alternating rounds, once for the same stack again and
 * again, once for random ones of about 12,000. The cost of reaching a random stack is subtracted.
 * libunwind is loaded privately: linked, it would replace backtrace(). Where it is missing its row
 * has 0 frames. METHOD, the first word of one of them: only takes the same stack so often, for
 * scripts/count-instructions.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "interpose/code/modules.h"
#include "interpose/stack/walker.h"

#define NOINLINE __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
enum { ROUNDS = 9, FRAMES_MAX = 256 };

static struct cuf_walker walker;
static int (*unw_backtrace)(void **, int);
static int (*unw_set_caching_policy)(void *, int);
static int (*unw_set_cache_size)(void *, size_t, int);
static void *pointers[FRAMES_MAX];
static uint64_t frames[FRAMES_MAX];
static unsigned depth_seen;

static unsigned by_nothing(void) { return 0; }

static unsigned by_walker(void)
{
	uint8_t stop;
	return cuf_walk(&walker, cuf_modules_generation(), 0, frames, FRAMES_MAX, &stop);
}

/* the barriers keep these from being jumped out of: each method sees its own frame, and as many as
 * the others */
static unsigned by_libunwind(void)
{
	unsigned depth = unw_backtrace ? (unsigned)unw_backtrace(pointers, FRAMES_MAX) : 0;
	__asm__ volatile("" : "+r"(depth));
	return depth;
}

static unsigned by_glibc(void)
{
	unsigned depth = (unsigned)backtrace(pointers, FRAMES_MAX);
	__asm__ volatile("" : "+r"(depth));
	return depth;
}

static const struct method {
	const char *name;
	unsigned (*capture)(void);
	unsigned slower; /* so many times fewer stacks are taken */
} methods[] = {
	{"nothing", by_nothing, 1},
	{"cuflight cuf_walk", by_walker, 1},
	{"libunwind unw_backtrace", by_libunwind, 1},
	{"glibc backtrace()", by_glibc, 10},
};
enum { METHODS = sizeof methods / sizeof *methods };

static const struct method *method;
static unsigned repeats;

static NOINLINE void leaf(void)
{
	for (unsigned i = 0; i < repeats; i++)
		depth_seen = method->capture();
	__asm__ volatile("");
}

/* eight functions with frames of different size that call one another as the bits of `path` say */
typedef void step(uint32_t path, int depth);
static step step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7;
static step *const steps[8] = {step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7};
#define STEP(n) \
	static NOINLINE void step_##n(uint32_t path, int depth) \
	{ \
		volatile char room[16 + n * 24]; \
		room[0] = (char)depth; \
		if (depth <= 0) \
			leaf(); \
		else \
			steps[path >> 29](path * 2654435761u + n, depth - 1); \
		room[1] = room[0]; \
	}
STEP(0)
STEP(1)
STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)

	static double cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double same_stack(int depth, unsigned stacks)
{
	double began = cpu_ns();
	repeats = stacks;
	step_0(0x12345678, depth);
	return (cpu_ns() - began) / stacks;
}

/* few paths often, many seldom, as programs have them */
static double random_stacks(int depth, unsigned stacks)
{
	uint64_t random = 88172645463325252ull;
	double began = cpu_ns();
	repeats = 1;
	for (unsigned i = 0; i < stacks; i++) {
		uint32_t path;
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		path = (uint32_t)(random >> 8) & ((1u << (random >> 40) % 13) - 1);
		step_0(path * 0x9E3779B1u, depth - 6 + (int)(path % 13));
	}
	return (cpu_ns() - began) / stacks;
}

static int by_value(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;
	return (difference > 0) - (difference < 0);
}

static void measure(const char *title, double (*run)(int, unsigned), int depth, unsigned stacks)
{
	double ns[METHODS][ROUNDS];
	unsigned seen[METHODS];
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned m = 0; m < METHODS; m++) {
			method = &methods[m];
			if (!round)
				run(depth, stacks / 10 + 1);
			ns[m][round] = run(depth, stacks / method->slower);
			seen[m] = depth_seen;
		}
	for (unsigned m = 0; m < METHODS; m++)
		qsort(ns[m], ROUNDS, sizeof(double), by_value);
	for (unsigned m = 1; m < METHODS; m++)
		printf("%-14s %-26s %8.1f ns  (min %.1f, %u frames)\n", title, methods[m].name,
			ns[m][ROUNDS / 2] - ns[0][ROUNDS / 2], ns[m][0] - ns[0][0], seen[m]);
}

/* libunwind at its best: a cache for each thread, large enough */
static void prepare_libunwind(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	void **space;
	if (!library)
		return;
	unw_backtrace = (int (*)(void **, int))dlsym(library, "unw_backtrace");
	space = dlsym(library, "_ULx86_64_local_addr_space");
	unw_set_caching_policy = (int (*)(void *, int))dlsym(library,
	                                                     "_ULx86_64_set_caching_policy");
	unw_set_cache_size = (int (*)(void *, size_t, int))dlsym(library,
	                                                         "_ULx86_64_set_cache_size");
	if (!space || !unw_set_caching_policy || !unw_set_cache_size)
		return;
	unw_set_caching_policy(*space, 2 /* UNW_CACHE_PER_THREAD */);
	unw_set_cache_size(*space, 1024, 0);
}

static int only(const char *name, int depth, unsigned stacks)
{
	for (unsigned m = 0; m < METHODS; m++)
		if (!strncmp(methods[m].name, name, strlen(name))) {
			method = &methods[m];
			same_stack(depth, stacks);
			return 0;
		}
	return 2;
}

int main(int count, char **words)
{
	int depth = count > 1 ? atoi(words[1]) : 23;
	unsigned stacks = count > 2 ? (unsigned)atoi(words[2]) : 200000;
	prepare_libunwind();
	cuf_modules_init(NULL);
	if (cuf_walker_init(&walker, 1))
		return 1;
	if (count > 3)
		return only(words[3], depth - 9, stacks);
	/* what lies around the steps: by_walker, leaf, step_0, measure's callers, main, libc's
	 * start */
	measure("same stack", same_stack, depth - 9, stacks);
	measure("random stacks", random_stacks, depth - 9, stacks);
	return 0;
}
