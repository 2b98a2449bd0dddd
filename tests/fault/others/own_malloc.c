/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an allocator of its own, as one with a static jemalloc has. It defines four
 * functions of the family. reallocarray is libc's, which calls the program's realloc. free_sized
 * may be missing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char arena[16 << 20] __attribute__((aligned(16)));
static size_t used;

void free_sized(void *block, size_t bytes) __attribute__((weak));

static size_t *header_of(void *block) { return (size_t *)((char *)block - 16); }

static int is_ours(void *block) { return (uintptr_t)block - (uintptr_t)arena < sizeof arena; }

void *malloc(size_t bytes)
{
	size_t at = __atomic_fetch_add(&used, ((bytes + 15) & ~(size_t)15) + 16, __ATOMIC_RELAXED);

	*(size_t *)(arena + at) = bytes;
	return arena + at + 16;
}

void free(void *block)
{
	if (block && !is_ours(block))
		__builtin_trap();
}

void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); } /* the arena is zeroed */

void *realloc(void *block, size_t bytes)
{
	void *moved = malloc(bytes);

	if (block && !is_ours(block))
		__builtin_trap();
	if (block)
		memcpy(moved, block, *header_of(block) < bytes ? *header_of(block) : bytes);
	return moved;
}

int main(void)
{
	int *numbers = malloc(10 * sizeof *numbers);

	numbers[9] = 7;
	numbers = reallocarray(numbers, 1000, sizeof *numbers);
	printf("%d %d\n", numbers[9], is_ours(numbers));
	if (free_sized)
		free_sized(numbers, 1000 * sizeof *numbers);
	else
		free(numbers);
	puts("freed");
	return 0;
}
