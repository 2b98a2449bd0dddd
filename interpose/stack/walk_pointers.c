/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker where no rules are compiled (machines other than x86-64 and aarch64): frame pointers.
 * Must never fault: records are read on the thread's own stack where it was
 * found readable, and elsewhere through the kernel.
 */
#include "interpose/code/cfi.h"
#include "interpose/stack/walker.h"

#if !CUF_HAS_RULES
#include "interpose/abi/format.h"
#include "interpose/code/modules.h"
#include "interpose/platform/readable.h"
#include "interpose/stack/walker_parts.h"
#include "interpose/platform/laws.h"

enum { FRAME_MAX_BYTES = 8 << 20, LINKS_MAX = 1024 };

struct frame_record {
	uintptr_t next, ip;
};

static READS_STACKS bool read_record(struct cuf_walker *walker, uintptr_t at,
				     struct frame_record *record)
{
	const struct word *words = (const struct word *)at;

	if (at % sizeof at)
		return false;
	if (!cuf_walker_on_own_stack(walker, at) || walker->stack_high - at < sizeof *record)
		return cuf_readable_copy(record, at, sizeof *record);
	*record = (struct frame_record){ words[0].value, words[1].value };
	return true;
}

/*
 * From the record at `at`, whose return address is the first frame. A record is at the lower end
 * of its frame.
 */
static unsigned follow_records(struct cuf_walker *walker, uintptr_t at, uintptr_t above,
			       uint64_t *frames, unsigned max, uint8_t *stop)
{
	struct frame_record record;
	unsigned count = 0;

	for (unsigned links = 0; links < LINKS_MAX; links++, at = record.next) {
		*stop = CUF_STOP_BOUNDS;
		if (!read_record(walker, at, &record))
			return count;
		record.ip = strip_signature(record.ip);
		*stop = CUF_STOP_END;
		if (!record.ip)
			return count;
		if (at > above && !cuf_modules_is_self(record.ip - 1)) {
			*stop = CUF_STOP_DEPTH;
			if (count == max)
				return count;
			walker->cache->frame_sp[count] = record.next;
			frames[count++] = record.ip;
		}
		*stop = record.next ? CUF_STOP_NO_RULE : CUF_STOP_END;
		if (record.next <= at || record.next - at > FRAME_MAX_BYTES)
			return count;
	}
	return count;
}

__attribute__((noinline)) unsigned cuf_walk(struct cuf_walker *walker, uint64_t generation,
					    uintptr_t above, uint64_t *frames, unsigned max,
					    uint8_t *stop)
{
	uintptr_t at = (uintptr_t)__builtin_frame_address(0);

	*stop = CUF_STOP_UNSUPPORTED;
	return walker->rules ? follow_records(walker, at, above, frames, max, stop) : 0;
}

/* There is no stack cache. */
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
