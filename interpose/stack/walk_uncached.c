/* SPDX-License-Identifier: Apache-2.0 */
/* Machines without a stack cache (all except x86-64): each stack is walked. */
#include "interpose/stack/walker_parts.h"

#include "interpose/platform/laws.h"

#if !defined __x86_64__
uint32_t cuf_walk_cached(struct cuf_walker *walker, uint64_t generation, const void *frame,
			 unsigned max, struct cuf_walked *walked)
{
	walked->hash = 0;
	walked->is_written = true;
	walked->id = &walker->no_id;
	walked->depth = cuf_walk(walker, generation, (uintptr_t)frame, walked->frames, max,
				 &walked->stop);
	for (unsigned i = 0; i < walked->depth; i++)
		walked->hash = cuf_frames_hash_step(walked->hash, walked->frames[i]);
	return 0;
}

void cuf_walked_frames(struct cuf_walker *walker, struct cuf_walked *walked) {}
#endif
