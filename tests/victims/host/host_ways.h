/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host blocks that are known by their sizes, and the truth about them, for programs that allocate
 * in unusual ways. tests/fault/host_truth.c reads it. The sizes are so large that host=sampled
 * records every such block, so both modes must have all of them.
 *
 * Contract: pair() and keep() may be called wherever malloc may. say_*() print lines of truth.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Sizes of their own, none of them asked for by libc. */
#define SIZE(n) ((size_t)(0x20000 + 48 * (n) + 7))

static __attribute__((noinline, unused)) void *keep(size_t size)
{
	void *volatile p = malloc(size); /* volatile: no tail call, this frame is there */
	if (!p)
		abort();
	return p;
}

static __attribute__((noinline, unused)) void pair(size_t size) { free(keep(size)); }

/* Calls bottom after `depth` more calls of itself: that many equal return addresses lie on the
 * stack. */
static __attribute__((noinline, unused)) void descend(unsigned depth, void (*bottom)(size_t),
                                                      size_t size)
{
	if (depth)
		descend(depth - 1, bottom, size);
	else
		bottom(size);
	__asm__ volatile("");
}

static inline void say_process(void)
{
	printf("process pid %d\n", (int)getpid());
	fflush(stdout);
}

/* Blocks of this size, all told. recursion: the longest run of equal frames in each of their
 * stacks; -1: any. */
static inline void say_size(size_t size, unsigned allocs, unsigned frees, int recursion)
{
	printf("size %zu allocs %u frees %u recursion %d\n", size, allocs, frees, recursion);
	fflush(stdout);
}

struct way { const char *name; int (*go)(void); };

static inline int ways_main(int argc, char **argv, const struct way *ways, size_t count)
{
	for (size_t i = 0; argc > 1 && i < count; i++)
		for (const char *a = argv[1], *b = ways[i].name; *a == *b; a++, b++)
			if (!*a)
				return ways[i].go();
	fprintf(stderr, "usage: %s WAY\n", argv[0]);
	return 2;
}
