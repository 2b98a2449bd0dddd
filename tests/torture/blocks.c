/* SPDX-License-Identifier: Apache-2.0 */
/* Random blocks of host memory, and the count of what was allocated and freed. */
#include "tests/torture/blocks.h"
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/victims/host/host_ways.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))

struct counts counts[SIZES];
unsigned fork_depth;

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014). */
uint64_t next(struct random *random)
{
	uint64_t mixed = random->state += 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

unsigned below(struct random *random, unsigned limit) { return next(random) % limit; }

/* One line; write and not printf, so that nothing is buffered when a process forks or is killed. */
void line(const char *format, ...)
{
	char text[256];
	va_list args;
	int length = snprintf(text, sizeof text, "%*s", (int)fork_depth * 2, "");

	va_start(args, format);
	length += vsnprintf(text + length, sizeof text - length - 1, format, args);
	va_end(args);
	text[length++] = '\n';
	if (write(1, text, length) != length)
		_exit(3);
}

static void *allocate_somehow(struct random *random, size_t bytes)
{
	void *block = NULL;

	switch (below(random, 8)) {
	case 0:
		return calloc(1, bytes);
	case 1:
		return calloc(bytes, 1);
	case 2:
		return posix_memalign(&block, 64u << below(random, 7), bytes) ? NULL : block;
	case 3:
		return aligned_alloc(64, bytes);
	case 4:
		return memalign(4096, bytes);
	case 5:
		return realloc(NULL, bytes);
	case 6:
		return reallocarray(NULL, bytes, 1);
	default:
		return malloc(bytes);
	}
}

static void fill(struct slot *slot, struct random *random, unsigned size)
{
	slot->size = size;
	slot->pattern = (uint8_t)next(random);
	counts[size].allocs++;
	memset(slot->block, slot->pattern, SIZE(size));
}

void block_check(const struct slot *slot)
{
	for (size_t i = 0; i < SIZE(slot->size); i += 509)
		if (slot->block[i] != slot->pattern) {
			line("a byte of a block changed");
			return;
		}
	if (malloc_usable_size(slot->block) < SIZE(slot->size))
		line("a block is smaller than it should be");
}

void block_release(struct slot *slot)
{
	block_check(slot);
	counts[slot->size].frees++;
	free(slot->block);
	slot->block = NULL;
}

static void resize(struct slot *slot, struct random *random)
{
	unsigned size = below(random, SIZES);
	unsigned char *grown;

	block_check(slot);
	if (below(random, 2))
		grown = realloc(slot->block, SIZE(size));
	else
		grown = reallocarray(slot->block, 1, SIZE(size));
	if (!grown) {
		line("realloc failed");
		return;
	}
	counts[slot->size].frees++;
	slot->block = grown;
	fill(slot, random, size);
}

/* One step on a table of blocks that belongs to this thread. */
void blocks_churn(struct slot *slots, unsigned count, struct random *random)
{
	struct slot *slot = &slots[below(random, count)];
	char *small[4];

	for (unsigned i = 0; i < ARRAY_SIZE(small); i++)
		small[i] = malloc(below(random, 3000));
	if (!slot->block) {
		unsigned size = below(random, SIZES);
		slot->block = allocate_somehow(random, SIZE(size));
		if (slot->block)
			fill(slot, random, size);
		else
			line("an allocation failed");
	} else if (below(random, 3)) {
		block_release(slot);
	} else {
		resize(slot, random);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(small); i++)
		free(small[i]);
}
