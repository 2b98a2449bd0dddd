/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's statistics. mallinfo2 and malloc_info wait for the lock of each arena, and malloc_info
 * for that of stdio, too. Any of them may be held permanently: by a thread that hangs, by the code
 * that a handler interrupted, or since a siglongjmp out of malloc. So the heap is read without
 * locks. Both count the blocks in the threads' caches as allocated.
 */
#include "interpose/hooks/malloc/allocator_stats.h"

#include "interpose/objects/c_library.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/sandbox.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/malloc/glibc_heap.h"

/* Blocks with a map of their own are in no arena. */
static void add_heap(struct cuf_text *text, const struct cuf_glibc_heap *heap)
{
	uint64_t mapped_bytes = heap->mapped_bytes == CUF_UNKNOWN ? 0 : heap->mapped_bytes;
	uint64_t live_bytes = mapped_bytes;
	if (heap->system_bytes > heap->free_bytes)
		live_bytes += heap->system_bytes - heap->free_bytes;
	cuf_stats_add(text, "system_bytes", heap->system_bytes + mapped_bytes);
	cuf_stats_add(text, "live_bytes", live_bytes);
	cuf_stats_add(text, "free_bytes", heap->free_bytes);
	cuf_stats_add(text, "free_count", heap->free_count);
	cuf_stats_add(text, "top_bytes", heap->top_bytes);
	if (heap->mapped_bytes != CUF_UNKNOWN) {
		cuf_stats_add(text, "mapped_bytes", heap->mapped_bytes);
		cuf_stats_add(text, "mapped_count", heap->mapped_count);
	}
	cuf_stats_add(text, "arena_count", heap->arena_count);
	cuf_stats_add(text, "largest_bytes", heap->largest_bytes);
	cuf_stats_add(text, "whole", heap->whole);
	for (unsigned i = 0; i < CUF_HEAP_CLASSES; i++)
		if (heap->class_count[i])
			cuf_stats_add_class(text, "free", 1ull << i, heap->class_count[i],
					    heap->class_bytes[i]);
}

/* A walk takes 50 to 80 nanoseconds a small block, and what is not reached is estimated.
 * libc's writable data begins with its dynamic section. A seccomp filter may kill for the system
 * call that reads memory. */
bool cuf_stats_glibc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	static struct cuf_glibc_heap heap;
	struct cuf_dso libc;

	if (cuf_sandbox_entered() || !cuf_dso_at(allocator->dynamic, &libc) ||
	    !cuf_glibc_heap_read((uintptr_t)allocator->dynamic, libc.end,
				 cuf_now_ns() + allocator->most_ns, &heap))
		return false;
	add_heap(text, &heap);
	return true;
}

void cuf_version_glibc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	cuf_text_add(text, cuf_glibc_version());
}
