/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for the moments before the real allocator is known: a fixed arena, never released.
 *
 * Contract: alignment is a power of two. Blocks are zeroed and aligned to at least 16 bytes. NULL
 * when the arena is full (CUF_BOOT_BYTES). cuf_boot_owns recognises its blocks permanently, so that
 * free, realloc and malloc_usable_size of one may come at any time. No lock; any thread; errno
 * untouched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUF_BOOT_BYTES (128u << 10)

extern char cuf_boot_arena[CUF_BOOT_BYTES];

void *cuf_boot_alloc(size_t bytes, size_t alignment);
size_t cuf_boot_size(const void *block); /* as requested; block: one of the arena */

static inline bool cuf_boot_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)cuf_boot_arena < CUF_BOOT_BYTES;
}
