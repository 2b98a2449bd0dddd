/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What glibc's malloc has free, read from its memory without its locks: another thread, or the code
 * that a signal handler interrupted, may hold one permanently.
 *
 * Contract: one caller at a time. Nothing is called and nothing is written outside `out`; the
 * kernel copies what is read, so memory that vanishes is no fault. Other threads may allocate
 * meanwhile: figures are then off by what is in flight. Arenas share the time until until_ns; each
 * is read for some hundred chunks at least. Past an arena's share, or where its heap is not as
 * expected, `whole` is false, and the arena's sums are scaled up from the part that was read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CUF_HEAP_CLASSES = 48 };

struct cuf_glibc_heap {
	bool whole;
	uint64_t arena_count;
	uint64_t system_bytes;     /* of all arenas; blocks with a map of their own are in none */
	uint64_t free_bytes, free_count, top_bytes, largest_bytes;
	uint64_t mapped_bytes, mapped_count; /* such blocks; CUF_UNKNOWN */
	uint64_t class_count[CUF_HEAP_CLASSES]; /* class i: chunks of [1 << i, 2 << i) bytes; */
	uint64_t class_bytes[CUF_HEAP_CLASSES]; /* without tops */
};

/*
 * start, end: libc's writable data, where its arena is searched once for the process. Returns false
 * when that is not found: another version, a heap that was never used.
 */
bool cuf_glibc_heap_read(uintptr_t start, uintptr_t end, uint64_t until_ns,
			 struct cuf_glibc_heap *out);
