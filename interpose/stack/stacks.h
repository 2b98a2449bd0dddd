/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned call stacks. Contract: the thread is entered. Returns the stack's id (its index + 1; at most 24 bits), 0
 * when the tables are full (counted) or the walk found nothing.
 */
#ifndef CUF_STACKS_H
#define CUF_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/store/recording.h"
#include "interpose/stack/walker.h"

/* What one thread needs to take a stack; too large for a stack of its own. */
struct cuf_stack_scratch {
	unsigned slot_index; /* of the thread; Python's side finds its own by it */
	struct cuf_walker walker;
	uint64_t frames[CUF_WALK_FRAMES_MAX];
};

/* Captures and interns the calling thread's stack, as a large block's, without frames at or below `above` (see walker.h). */
uint32_t cuf_stack_capture(struct cuf_stack_scratch *scratch, uintptr_t above);

/* The same for the malloc family: the stack of the caller of a hook that is still running, from its
 * __builtin_frame_address(0). A stack that was seen a moment ago costs a fraction. Not large: one of very many blocks,
 * whose stacks leave a part of the tables to those of large ones, which are few and explain most bytes. */
uint32_t cuf_stack_capture_caller(struct cuf_stack_scratch *scratch, const void *frame, bool large);

/* Never 0, and every bit depends on every other: the step alone only mixes upwards. */
static inline uint64_t cuf_stack_hash(uint64_t frames_hash)
{
	frames_hash ^= frames_hash >> 32;
	frames_hash *= 0xD6E8FEB86659FD93ull;
	return (frames_hash ^ frames_hash >> 32) | 1;
}

/*
 * Where a stack is looked for: first in a row of the near part of the index, which alone is touched while there are few
 * stacks (each page of a file that is touched costs as much as thirty walks), then from its home in the rest. In full mode
 * there is no near part: stacks are many, and looking at two places would cost more.
 */
enum { CUF_STACKS_ROW = 8 };
static inline uint32_t cuf_stack_row(uint64_t hash)
{
	return (uint32_t)(hash >> 32) & (cuf_recording.stacks_near - 1) & ~(CUF_STACKS_ROW - 1u);
}
static inline uint32_t cuf_stack_home(uint64_t hash)
{
	return cuf_recording.stacks_near + (uint32_t)((hash >> 32) * (cuf_recording.stack_mask + 1 - cuf_recording.stacks_near) >> 32);
}

/* Has the cache fetch where this stack will be looked up: to be called some time before. */
static inline void cuf_stack_expect(uint64_t frames_hash)
{
	uint64_t hash = cuf_stack_hash(frames_hash);
	__builtin_prefetch(&cuf_recording.stacks[cuf_recording.stacks_near ? cuf_stack_row(hash) : cuf_stack_home(hash)]);
}

#endif
