/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/stack/unwinder.h"

#include "interpose/abi/format.h"
#include "interpose/code/modules.h"
#include "interpose/platform/unwinder.h"
#include "interpose/platform/laws.h"

/* Frames of one walk, ours and left-out ones included: a damaged stack may lead in a circle. */
enum { STEPS_MAX = 1024 };

static bool read_frame(void *cursor, uint64_t *ip, uint64_t *sp)
{
	return !cuf_unwinder.get(cursor, CUF_UNWINDER_IP, ip) &&
	       !cuf_unwinder.get(cursor, CUF_UNWINDER_SP, sp) && *ip;
}

/*
 * A signal's frame, and the frame that it interrupted, are at the instruction itself. Ours are
 * written as the address after it, as if it had called.
 */
static unsigned follow(void *cursor, struct cuf_walker *walker, uintptr_t above, uint64_t *frames,
		       unsigned max, uint8_t *stop)
{
	unsigned count = 0, after_signal = 0;
	int more = 1;

	for (unsigned steps = 0; steps < STEPS_MAX && more > 0; steps++) {
		unsigned is_signal = cuf_unwinder.is_signal(cursor) > 0;
		uint64_t ip, sp;

		*stop = CUF_STOP_END;
		if (!read_frame(cursor, &ip, &sp))
			return count;
		ip += is_signal | after_signal;
		after_signal = is_signal;
		if (is_signal)
			above = 0; /* the handler may have a stack of its own */
		if (sp - 8 > above && !cuf_modules_is_self(ip - 1)) {
			*stop = CUF_STOP_DEPTH;
			if (count == max)
				return count;
			walker->cache->frame_sp[count] = sp;
			frames[count++] = ip;
		}
		more = cuf_unwinder.step(cursor);
	}
	*stop = more ? CUF_STOP_NO_RULE : CUF_STOP_END;
	return count;
}

unsigned cuf_unwinder_walk(struct cuf_walker *walker, uintptr_t above, uint64_t *frames,
			   unsigned max, uint8_t *stop)
{
	struct cuf_unwinder_memory *memory;

	*stop = CUF_STOP_UNSUPPORTED;
	if (!walker->cache)
		return 0;
	memory = &walker->cache->unwinder;
	if (cuf_unwinder.context(memory->context) ||
	    cuf_unwinder.init(memory->cursor, memory->context) < 0)
		return 0;
	return follow(memory->cursor, walker, above, frames, max, stop);
}
