/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the kernel's return from a signal handler among the frames of this thread's stack. */
#include <string.h>
#include "interpose/code/modules.h"
#include "interpose/process/thread.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/stacks.h"
#include "interpose/stack/walker.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* The code that a handler returns to: a call of rt_sigreturn. */
static bool is_signal_return(uintptr_t code)
{
#if defined __x86_64__
	/* mov $15, %rax; syscall */
	static const uint8_t call[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
#elif defined __aarch64__
	/* mov x8, #139; svc #0 */
	static const uint8_t call[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
#endif
	struct cuf_object object;
	return cuf_object_find(code, &object) && code + sizeof call <= object.end &&
	       !memcmp((const void *)code, call, sizeof call);
}

/* The frames of a stack; 0: the id or its frames are not in the tables. */
static unsigned frames_of(uint32_t id, const uint64_t **frames)
{
	const struct cuf_stack *stack;
	if (!id || id - 1 > cuf_recording.stack_mask)
		return 0;
	stack = &cuf_recording.stacks[id - 1];
	if (stack->first > cuf_recording.frame_count ||
	    stack->depth > cuf_recording.frame_count - stack->first)
		return 0;
	*frames = cuf_recording.frames + stack->first;
	return stack->depth;
}

bool cuf_signal_on_stack(void *frame)
{
	struct cuf_thread_state *thread = cuf_thread_enter();
	const uint64_t *frames = NULL;
	unsigned depth;
	uint32_t id;
	if (!thread)
		return true;
	id = cuf_stack_capture(&thread->stack, (uintptr_t)frame);
	cuf_thread_leave(thread);
	if (!id)
		return true;
	depth = frames_of(id, &frames);
	for (unsigned i = 0; i < depth; i++)
		/* a return address is one past the place where a signal frame goes on */
		if (is_signal_return((uintptr_t)frames[i] - 1))
			return true;
	return false;
}

static bool is_in_range(uintptr_t code, const struct cuf_code_range *ranges, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (code >= ranges[i].start && code < ranges[i].end)
			return true;
	return false;
}

/* Walked anew, because what is interned ends at stack_depth. */
bool cuf_stack_avoids(void *frame, const struct cuf_code_range *ranges, unsigned count)
{
	struct cuf_thread_state *thread = cuf_thread_enter();
	struct cuf_stack_scratch *scratch;
	uint8_t stop = CUF_STOP_UNSUPPORTED;
	unsigned depth;
	bool avoids;
	if (!thread)
		return false;
	scratch = &thread->stack;
	depth = cuf_walk(&scratch->walker, cuf_modules_generation(), (uintptr_t)frame,
			 scratch->frames, CUF_WALK_FRAMES_MAX, &stop);
	avoids = depth && stop == CUF_STOP_END;
	for (unsigned i = 0; avoids && i < depth; i++) {
		uintptr_t code = (uintptr_t)scratch->frames[i] - 1;
		avoids = !is_in_range(code, ranges, count) && !is_signal_return(code);
	}
	cuf_thread_leave(thread);
	return avoids;
}
