/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for the moments in which the real allocator is not known: a fixed arena, never given back.
 *
 * Contract: alignment is a power of two; blocks are at least 16-byte aligned and zeroed; NULL when the arena is full
 * (CUF_BOOT_BYTES). cuf_boot_owns tells its blocks apart for ever, so that free, realloc and malloc_usable_size of one
 * may come at any time. No lock; any thread; errno untouched.
 */
#ifndef CUF_BOOT_ALLOC_H
#define CUF_BOOT_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUF_BOOT_BYTES (128u << 10)

extern char cuf_boot_arena[CUF_BOOT_BYTES];

void *cuf_boot_alloc(size_t bytes, size_t alignment);
size_t cuf_boot_size(const void *block); /* as it was asked for; block: one of ours */

static inline bool cuf_boot_owns(const void *p) { return (uintptr_t)p - (uintptr_t)cuf_boot_arena < CUF_BOOT_BYTES; }

#endif
