/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned call stacks: each distinct stack is written to the recording once and has an id.
 * Contract: the calling thread is inside the recorder, and the scratch is its own. Returns the
 * stack's id (its index + 1; at most 24 bits). 0: the tables are full (counted), or the walk
 * found nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/stack/walker.h"
#include "interpose/store/recording.h"

/* What one thread needs to capture a stack; too large to be on a stack. */
struct cuf_stack_scratch {
	/* of the thread; it selects the Python side's data too */
	unsigned slot_index;
	/* the stack that created the thread: a part of each of its stacks; 0: unknown */
	uint32_t creator;
	struct cuf_walker walker;
	uint64_t frames[CUF_WALK_FRAMES_MAX];
};

/*
 * Captures and interns the calling thread's stack, as a large block's, without the frames at or
 * below `above` (see walker.h).
 */
uint32_t cuf_stack_capture(struct cuf_stack_scratch *scratch, uintptr_t above);

/*
 * The same for the malloc family: the stack of the caller of a hook that is still running, from
 * its __builtin_frame_address(0). A stack that was captured a moment ago costs a fraction. large:
 * the stacks of large blocks are few and explain most bytes, so a part of the tables is reserved
 * for them.
 */
uint32_t cuf_stack_capture_caller(struct cuf_stack_scratch *scratch, const void *frame, bool large);

/*
 * The same for calls whose outermost hook may be gone, because the program jumped out of it: frame
 * is read only where this thread's own stack is in use. Elsewhere it is an address to compare with,
 * as in cuf_stack_capture.
 */
uint32_t cuf_stack_capture_call(struct cuf_stack_scratch *scratch, uintptr_t frame);

/*
 * Never 0. Every bit depends on every other one, while the step of cuf_frames_hash_step only
 * mixes upwards.
 */
static inline uint64_t cuf_stack_hash(uint64_t frames_hash)
{
	frames_hash ^= frames_hash >> 32;
	frames_hash *= 0xD6E8FEB86659FD93ull;
	return (frames_hash ^ frames_hash >> 32) | 1;
}

/*
 * Where a stack is searched: first in a row of the near part of the index, then from its home in
 * the rest. While there are few stacks, only the near part is touched, as a first touch of a
 * file's page costs as much as thirty walks. In full mode there is no near part: stacks are many,
 * and a search in two places would cost more. No search reaches beyond the places of its part.
 */
enum { CUF_STACKS_ROW = 8, CUF_STACKS_PROBE = 16 };

static inline uint32_t cuf_stack_row(uint64_t hash)
{
	return (uint32_t)(hash >> 32) & (cuf_recording.stacks_near - 1) & ~(CUF_STACKS_ROW - 1u);
}

static inline uint32_t cuf_stack_home(uint64_t hash)
{
	uint64_t homes = cuf_recording.stacks_shared - cuf_recording.stacks_near - CUF_STACKS_PROBE;

	return cuf_recording.stacks_near + (uint32_t)((hash >> 32) * homes >> 32);
}

/* Prefetches the entry where this stack will be searched. To be called some time before. */
static inline void cuf_stack_expect(uint64_t frames_hash)
{
	uint64_t hash = cuf_stack_hash(frames_hash);
	uint32_t index = cuf_recording.stacks_near ? cuf_stack_row(hash) : cuf_stack_home(hash);

	__builtin_prefetch(&cuf_recording.stacks[index]);
}
