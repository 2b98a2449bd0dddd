/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks by hash, in the shared index, where each distinct stack is written once. Stacks seen lately do not come here: the walker knows them. */
#include "interpose/stack/stacks.h"

#include <string.h>
#include "interpose/store/dropped.h"
#include "interpose/code/modules.h"
#include "interpose/platform/options.h"
#include "interpose/python/python.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* Large blocks' stacks find room last: a quarter of the frames is theirs, and in the index they are looked for at four times as many places. */
enum { PROBE = 64, LARGE_PART = 4 };

static uint64_t hash_frames(const uint64_t *frames, unsigned depth)
{
	uint64_t h = 0;
	for (unsigned i = 0; i < depth; i++)
		h = cuf_frames_hash_step(h, frames[i]);
	return h;
}

/* Makes sure that the modules of a stack are noted as they are now: after a dlclose something may lie there anew. */
static void note_modules(struct cuf_stack *entry, const uint64_t *frames, unsigned depth)
{
	__atomic_store_n(&entry->noted, (uint8_t)cuf_modules_generation(), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < depth; i++)
		if (!cuf_frame_is_python(frames[i]))
			cuf_modules_note(frames[i]);
}

/* Of a stack whose index entry has none yet. */
static void write_frames(struct cuf_stack *entry, const uint64_t *frames, unsigned depth, uint8_t stop, bool large)
{
	struct cuf_header *h = cuf_recording.header;
	uint64_t first, room = cuf_recording.frame_count - (large ? 0 : cuf_recording.frame_count / LARGE_PART);
	if (__atomic_load_n(&h->frames_used, __ATOMIC_RELAXED) + depth > room ||
	    (first = __atomic_fetch_add(&h->frames_used, depth, __ATOMIC_RELAXED)) + depth > cuf_recording.frame_count) {
		cuf_count_dropped(CUF_LOST_STACKS);
		return;
	}
	__atomic_fetch_add(&h->stack_stops[stop < CUF_STOP_MAX ? stop : CUF_STOP_UNSUPPORTED], 1, __ATOMIC_RELAXED);
	memcpy(cuf_recording.frames + first, frames, depth * sizeof *frames);
	entry->first = (uint32_t)first;
	entry->stop = stop;
	__atomic_store_n(&entry->depth, (uint16_t)depth, __ATOMIC_RELEASE);
	__atomic_fetch_add(&h->stack_count, 1, __ATOMIC_RELAXED);
	note_modules(entry, frames, depth);
}

/* New; or seen with other modules, or by a large block after there was no room for small ones'. */
static __attribute__((noinline)) void write_or_note(
	struct cuf_walker *walker, struct cuf_walked *walked, struct cuf_stack *entry, bool is_new, bool large)
{
	cuf_walked_frames(walker, walked);
	if (is_new || (large && !__atomic_load_n(&entry->depth, __ATOMIC_RELAXED)))
		write_frames(entry, walked->frames, walked->depth, walked->stop, large);
	else
		note_modules(entry, walked->frames, walked->depth);
}

/* Looks at some places, and takes the first free one for a stack that is at none before. 0: it is at none, and none was free. */
static inline uint32_t look(struct cuf_walker *walker, struct cuf_walked *walked, bool large, uint64_t hash, uint32_t at, unsigned places)
{
	for (unsigned i = 0; i < places; i++, at = at < cuf_recording.stack_mask ? at + 1 : cuf_recording.stacks_near) {
		struct cuf_stack *entry = &cuf_recording.stacks[at];
		uint64_t seen = __atomic_load_n(&entry->hash, __ATOMIC_ACQUIRE);
		if (!seen && __atomic_compare_exchange_n(&entry->hash, &seen, hash, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			write_or_note(walker, walked, entry, true, large);
			return at + 1;
		}
		if (seen == hash) {
			if (__builtin_expect(__atomic_load_n(&entry->noted, __ATOMIC_RELAXED) != (uint8_t)cuf_modules_generation(), 0) ||
			    __builtin_expect(large && !__atomic_load_n(&entry->depth, __ATOMIC_RELAXED), 0))
				write_or_note(walker, walked, entry, false, large);
			return at + 1;
		}
	}
	return 0;
}

static inline uint32_t intern(struct cuf_walker *walker, struct cuf_walked *walked, bool large)
{
	uint64_t hash = cuf_stack_hash(walked->hash);
	uint32_t id = cuf_recording.stacks_near ? look(walker, walked, large, hash, cuf_stack_row(hash), CUF_STACKS_ROW) : 0;
	if (!id)
		id = look(walker, walked, large, hash, cuf_stack_home(hash), large ? PROBE : PROBE / LARGE_PART);
	if (!id)
		cuf_count_dropped(CUF_LOST_STACKS);
	return id;
}

static inline unsigned depth_limit(void)
{
	return cuf_options.stack_depth < CUF_WALK_FRAMES_MAX ? (unsigned)cuf_options.stack_depth : CUF_WALK_FRAMES_MAX;
}

/* Puts the gathered Python frames into a stack whose frames are written. */
static void merge_python(struct cuf_stack_scratch *scratch, struct cuf_walked *walked)
{
	_Static_assert(CUF_WALK_FRAMES_MAX <= CUF_PYTHON_FRAMES_MAX, "a native stack must fit");
	const struct cuf_native_stack stack = { walked->frames, scratch->walker.memos->lows, walked->depth };
	walked->depth = cuf_python_merge(scratch->slot_index, &stack, depth_limit(), &walked->stop);
	walked->hash = hash_frames(walked->frames, walked->depth);
}

/* The native stack was walked, and there are Python frames to go with it. */
static uint32_t capture_merged(struct cuf_stack_scratch *scratch, struct cuf_walked *walked, uint64_t python)
{
	uint64_t key = hash_frames(scratch->frames, walked->depth) + (python ^ cuf_modules_generation() << 8 ^ walked->stop);
	struct cuf_python_merged *known = cuf_python_merged(scratch->slot_index, key);
	if (known->key == key && known->id)
		return known->id;
	merge_python(scratch, walked);
	*known = (struct cuf_python_merged){ key, intern(&scratch->walker, walked, true) };
	return known->id;
}

uint32_t cuf_stack_capture(struct cuf_stack_scratch *scratch, uintptr_t above)
{
	struct cuf_walked walked = { .frames = scratch->frames, .is_written = true, .stop = CUF_STOP_END };
	uint64_t python = cuf_python_gather(scratch->slot_index, depth_limit());
	walked.depth = cuf_walk(&scratch->walker, cuf_modules_generation(), above, scratch->frames, depth_limit(), &walked.stop);
	if (python)
		return capture_merged(scratch, &walked, python);
	walked.hash = hash_frames(scratch->frames, walked.depth);
	return walked.depth ? intern(&scratch->walker, &walked, true) : 0;
}

/* A stack that is known, but met with small blocks alone when frames had become scarce. */
static bool lacks_frames(uint32_t id)
{
	uint64_t used = __atomic_load_n(&cuf_recording.header->frames_used, __ATOMIC_RELAXED), count = cuf_recording.frame_count;
	return used + CUF_WALK_FRAMES_MAX > count - count / LARGE_PART && used + CUF_WALK_FRAMES_MAX <= count &&
	       !__atomic_load_n(&cuf_recording.stacks[id - 1].depth, __ATOMIC_RELAXED);
}

uint32_t cuf_stack_capture_caller(struct cuf_stack_scratch *scratch, const void *frame, bool large)
{
	/* behind one native stack there may be any Python stack, so both together are what is known */
	struct cuf_walked walked = { .frames = scratch->frames, .beside = cuf_python_gather(scratch->slot_index, depth_limit()) };
	uint32_t id = cuf_walk_cached(&scratch->walker, cuf_modules_generation(), frame, depth_limit(), &walked);
	if (id)
		return large && __builtin_expect(lacks_frames(id), 0) ? cuf_stack_capture(scratch, (uintptr_t)frame) : id;
	if (!walked.depth)
		return 0;
	if (walked.beside) {
		cuf_walked_frames(&scratch->walker, &walked);
		merge_python(scratch, &walked);
	}
	return *walked.id = intern(&scratch->walker, &walked, large);
}
