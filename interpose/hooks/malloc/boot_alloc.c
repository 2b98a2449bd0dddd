/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator over static memory. Its pages cost nothing until they are touched. In most
 * processes none is, because the real allocator is found without allocating (loader/real.c).
 */
#include "interpose/hooks/malloc/boot_alloc.h"

#include "interpose/platform/laws.h"

#define HEAD_BYTES sizeof(size_t) /* each block's size is stored right before it */

char cuf_boot_arena[CUF_BOOT_BYTES] __attribute__((aligned(4096)));
static size_t used;

/* Where a block would start that follows `before` used bytes. */
static size_t block_offset(size_t before, size_t step)
{
	uintptr_t base = (uintptr_t)cuf_boot_arena;
	return ((base + before + HEAD_BYTES + step - 1) & ~(step - 1)) - base;
}

/* Threads may race before the real allocator is known, so space is claimed by compare-and-swap.
 * NULL: the arena is full. Blocks are never reused, so all of them are zeroed. */
void *cuf_boot_alloc(size_t bytes, size_t alignment)
{
	size_t step = alignment < 16 ? 16 : alignment;
	size_t before = __atomic_load_n(&used, __ATOMIC_RELAXED), at;
	do {
		if (before > CUF_BOOT_BYTES || step > CUF_BOOT_BYTES)
			return NULL;
		at = block_offset(before, step);
		if (at >= CUF_BOOT_BYTES || bytes > CUF_BOOT_BYTES - at)
			return NULL;
	} while (!__atomic_compare_exchange_n(&used, &before, at + bytes, 1, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	__builtin_memcpy(cuf_boot_arena + at - HEAD_BYTES, &bytes, sizeof bytes);
	return cuf_boot_arena + at;
}

/* The head may be unaligned for large alignments, so it is copied. */
size_t cuf_boot_size(const void *block)
{
	size_t bytes;
	__builtin_memcpy(&bytes, (const char *)block - HEAD_BYTES, sizeof bytes);
	return bytes;
}
