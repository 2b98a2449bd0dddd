/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks by hash, in the shared index, where each distinct stack is written once. Stacks that
 * were captured lately do not come here: the walker's cache has their ids.
 */
#include "interpose/stack/stacks.h"

#include <string.h>
#include "interpose/code/modules.h"
#include "interpose/platform/options.h"
#include "interpose/platform/unwinder.h"
#include "interpose/python/python.h"
#include "interpose/stack/unwinder.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/store/dropped.h"
#include "interpose/store/fault.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/*
 * A quarter of the frames is reserved for the stacks of large blocks, as is a part of the index. So
 * they are the last to be dropped, however many stacks small blocks have.
 */
enum { LARGE_PART = 4, LARGE_PROBE = 64 };

/* ---- the tables ---- */

static uint64_t hash_frames(const uint64_t *frames, unsigned depth)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < depth; i++)
		hash = cuf_frames_hash_step(hash, frames[i]);
	return hash;
}

/*
 * Makes sure that the modules of a stack are in META. After a dlclose another one may be at the
 * same address.
 */
static void note_modules(struct cuf_stack *entry, const uint64_t *frames, unsigned depth)
{
	__atomic_store_n(&entry->noted, (uint8_t)cuf_modules_generation(), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < depth; i++)
		if (!cuf_frame_is_python(frames[i]))
			cuf_modules_note(frames[i]);
}

static uint64_t frames_in_use(void)
{
	return __atomic_load_n(&cuf_recording.header->frames_used, __ATOMIC_RELAXED);
}

/* Reserves depth frames. UINT64_MAX: they do not fit. */
static uint64_t reserve_frames(unsigned depth, bool large)
{
	uint64_t room = cuf_recording.frame_count, first;

	if (!large)
		room -= cuf_recording.frame_count / LARGE_PART;
	if (frames_in_use() / 2 > cuf_recording.frame_count) { /* threads overshoot by far less */
		cuf_fault(CUF_FAULT_STACKS);
		return UINT64_MAX;
	}
	if (frames_in_use() + depth > room)
		return UINT64_MAX;
	first = __atomic_fetch_add(&cuf_recording.header->frames_used, depth, __ATOMIC_RELAXED);
	if (first + depth > cuf_recording.frame_count)
		return UINT64_MAX;
	return first;
}

/* For a stack whose index entry has no frames yet. depth is the commit. */
static void write_frames(struct cuf_stack *entry, const struct cuf_walked *walked, bool large)
{
	struct cuf_header *header = cuf_recording.header;
	unsigned reason = walked->stop < CUF_STOP_MAX ? walked->stop : CUF_STOP_UNSUPPORTED;
	unsigned depth = walked->depth + (walked->creator != 0);
	uint64_t first = reserve_frames(depth, large);

	if (first == UINT64_MAX) {
		cuf_count_dropped(CUF_LOST_STACKS);
		return;
	}
	__atomic_fetch_add(&header->stack_stops[reason], 1, __ATOMIC_RELAXED);
	memcpy(cuf_recording.frames + first, walked->frames,
	       walked->depth * sizeof *walked->frames);
	if (walked->creator)
		cuf_recording.frames[first + walked->depth] = CUF_FRAME_CREATOR | walked->creator;
	entry->first = (uint32_t)first;
	entry->stop = walked->stop;
	__atomic_store_n(&entry->depth, (uint16_t)depth, __ATOMIC_RELEASE);
	__atomic_fetch_add(&header->stack_count, 1, __ATOMIC_RELAXED);
	note_modules(entry, walked->frames, walked->depth);
}

static inline bool has_frames(const struct cuf_stack *entry)
{
	return __atomic_load_n(&entry->depth, __ATOMIC_RELAXED) != 0;
}

/*
 * The stack is new, was met with other modules, or belongs to a large block after small ones'
 * frames were dropped.
 */
static __attribute__((noinline)) void write_or_note(struct cuf_walker *walker,
						    struct cuf_walked *walked,
						    struct cuf_stack *entry, bool is_new,
						    bool large)
{
	cuf_walked_frames(walker, walked);
	if (is_new || (large && !has_frames(entry)))
		write_frames(entry, walked, large);
	else
		note_modules(entry, walked->frames, walked->depth);
}

/*
 * Searches some places, and claims the first free one for a stack that is at none before it.
 * Returns the id; 0: not found, and no place was free.
 */
static inline uint32_t find_or_add(struct cuf_walker *walker, struct cuf_walked *walked, bool large,
				   uint64_t hash, uint32_t at, unsigned places)
{
	for (const uint32_t end = at + places; at < end; at++) {
		struct cuf_stack *entry = &cuf_recording.stacks[at];
		uint64_t seen = __atomic_load_n(&entry->hash, __ATOMIC_ACQUIRE);

		if (!seen && __atomic_compare_exchange_n(&entry->hash, &seen, hash, 0,
							 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			write_or_note(walker, walked, entry, true, large);
			return at + 1;
		}
		if (seen == hash) {
			uint8_t noted = __atomic_load_n(&entry->noted, __ATOMIC_RELAXED);

			if (__builtin_expect(noted != (uint8_t)cuf_modules_generation(), 0) ||
			    __builtin_expect(large && !has_frames(entry), 0))
				write_or_note(walker, walked, entry, false, large);
			return at + 1;
		}
	}
	return 0;
}

/* Where the stack of a large block is when the places at its home are taken, for good. */
static inline uint32_t reserved_home(uint64_t hash)
{
	const uint32_t first = cuf_recording.stacks_shared;
	const uint64_t homes = cuf_recording.stack_mask + 1 - first - LARGE_PROBE;

	return first + (uint32_t)((hash >> 32) * homes >> 32);
}

/* The same addresses are another stack when another object has been loaded there since. */
static __attribute__((noinline)) uint64_t mix_epochs(struct cuf_walker *walker,
						     struct cuf_walked *walked)
{
	uint64_t hash = walked->hash;

	cuf_walked_frames(walker, walked);
	for (unsigned i = 0; i < walked->depth; i++)
		if (!cuf_frame_is_python(walked->frames[i]))
			hash ^= cuf_modules_epoch(walked->frames[i] - 1) * (2 * i + 1);
	return hash;
}

static inline uint64_t creator_key(const struct cuf_stack_scratch *scratch)
{
	return scratch->creator * 0x9E3779B97F4A7C15ull;
}

static inline uint32_t intern(struct cuf_stack_scratch *scratch, struct cuf_walked *walked,
			      bool large)
{
	struct cuf_walker *walker = &scratch->walker;
	uint64_t hash = walked->hash;
	uint32_t id = 0;

	walked->creator = scratch->creator;

	if (__builtin_expect(cuf_modules_any_closed(), 0))
		hash = mix_epochs(walker, walked);
	hash = cuf_stack_hash(hash ^ creator_key(scratch));
	if (cuf_recording.stacks_near)
		id = find_or_add(walker, walked, large, hash, cuf_stack_row(hash), CUF_STACKS_ROW);
	if (!id)
		id = find_or_add(walker, walked, large, hash, cuf_stack_home(hash),
				 CUF_STACKS_PROBE);
	if (!id && large)
		id = find_or_add(walker, walked, true, hash, reserved_home(hash), LARGE_PROBE);
	if (!id)
		cuf_count_dropped(CUF_LOST_STACKS);
	return id;
}

/* ---- capturing ---- */

static inline unsigned depth_limit(void)
{
	if (cuf_options.stack_depth < CUF_WALK_FRAMES_MAX)
		return (unsigned)cuf_options.stack_depth;
	return CUF_WALK_FRAMES_MAX;
}

/* Puts the gathered Python frames into a stack whose native frames are written. */
static void merge_python(struct cuf_stack_scratch *scratch, struct cuf_walked *walked)
{
	_Static_assert(CUF_WALK_FRAMES_MAX <= CUF_PYTHON_FRAMES_MAX, "a native stack must fit");
	const struct cuf_native_stack stack = {
		walked->frames, scratch->walker.cache->frame_sp, walked->depth
	};

	walked->depth = cuf_python_merge(scratch->slot_index, &stack, depth_limit(), &walked->stop);
	walked->hash = hash_frames(walked->frames, walked->depth);
}

/*
 * The native stack was walked, and there are Python frames to go with it. The native frames and
 * python (the hash of the Python frames) together identify the merged stack, which saves merging
 * and interning.
 */
static uint32_t capture_merged(struct cuf_stack_scratch *scratch, struct cuf_walked *walked,
			       uint64_t python)
{
	uint64_t native = hash_frames(scratch->frames, walked->depth);
	uint64_t key = native + (python ^ creator_key(scratch) ^ cuf_modules_generation() << 8 ^
				 walked->stop);
	struct cuf_python_merged *merged = cuf_python_merged(scratch->slot_index, key);

	if (merged->key == key && merged->id)
		return merged->id;
	merge_python(scratch, walked);
	*merged = (struct cuf_python_merged){ key, intern(scratch, walked, true) };
	return merged->id;
}

static unsigned walk(struct cuf_stack_scratch *scratch, uintptr_t above, uint8_t *stop)
{
	if (__builtin_expect(cuf_unwinder.step != NULL, 0))
		return cuf_unwinder_walk(&scratch->walker, above, scratch->frames, depth_limit(),
					 stop);
	return cuf_walk(&scratch->walker, cuf_modules_generation(), above, scratch->frames,
			depth_limit(), stop);
}

uint32_t cuf_stack_capture(struct cuf_stack_scratch *scratch, uintptr_t above)
{
	struct cuf_walked walked = {
		.frames = scratch->frames, .is_written = true, .stop = CUF_STOP_END
	};
	uint64_t python = cuf_python_gather(scratch->slot_index, depth_limit());

	walked.depth = walk(scratch, above, &walked.stop);
	if (python)
		return capture_merged(scratch, &walked, python);
	walked.hash = hash_frames(scratch->frames, walked.depth);
	if (!walked.depth)
		return 0;
	return intern(scratch, &walked, true);
}

/*
 * A cached stack that was met with small blocks only, when their share of the frames was used up.
 */
static bool lacks_frames(uint32_t id)
{
	uint64_t count = cuf_recording.frame_count, end = frames_in_use() + CUF_WALK_FRAMES_MAX;

	return end > count - count / LARGE_PART && end <= count &&
	       !has_frames(&cuf_recording.stacks[id - 1]);
}

/*
 * Behind one native stack there may be any Python stack, so the cache's id stands for both
 * together.
 */
uint32_t cuf_stack_capture_caller(struct cuf_stack_scratch *scratch, const void *frame, bool large)
{
	struct cuf_walked walked = {
		.frames = scratch->frames,
	};
	uint32_t id;

	if (__builtin_expect(cuf_unwinder.step != NULL, 0))
		return cuf_stack_capture(scratch, (uintptr_t)frame);
	walked.extra_key = cuf_python_gather(scratch->slot_index, depth_limit());
	id = cuf_walk_cached(&scratch->walker, cuf_modules_generation(), frame, depth_limit(),
			     &walked);
	if (id) {
		if (large && __builtin_expect(lacks_frames(id), 0))
			return cuf_stack_capture(scratch, (uintptr_t)frame);
		return id;
	}
	if (!walked.depth)
		return 0;
	if (walked.extra_key) {
		cuf_walked_frames(&scratch->walker, &walked);
		merge_python(scratch, &walked);
	}
	return *walked.id = intern(scratch, &walked, large);
}

uint32_t cuf_stack_capture_call(struct cuf_stack_scratch *scratch, uintptr_t frame)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (scratch->walker.rules && cuf_walker_on_own_stack(&scratch->walker, here) &&
	    frame - here < scratch->walker.stack_high - 2 * sizeof frame - here)
		return cuf_stack_capture_caller(scratch, (const void *)frame, true);
	return cuf_stack_capture(scratch, frame);
}
