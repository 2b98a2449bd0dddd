/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the kernel's return from a signal handler among the frames of a stack. */
#include "interpose/hooks/loader/signal_frame.h"

#include <string.h>
#include "interpose/store/recording.h"
#include "interpose/stack/stacks.h"
#include "interpose/process/thread.h"
#include "interpose/hooks/loader/dso.h"

/* The kernel's way back from a handler: a call of rt_sigreturn. */
static bool is_signal_return(const uint8_t *code)
{
#if defined __x86_64__
	static const uint8_t call[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }; /* mov $15, %rax; syscall */
#elif defined __aarch64__
	static const uint8_t call[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };    /* mov x8, #139; svc #0 */
#endif
	struct cuf_dso dso;
	return cuf_dso_at(code, &dso) && (uintptr_t)code + sizeof call <= dso.end && !memcmp(code, call, sizeof call);
}

bool cuf_signal_on_stack(void *frame)
{
	struct cuf_thread_state *t = cuf_thread_enter();
	uint32_t id = t ? cuf_stack_capture(&t->stack, (uintptr_t)frame) : 0;
	const struct cuf_stack *stack;
	if (t)
		cuf_thread_leave(t);
	if (!id) /* cannot be told */
		return true;
	stack = &cuf_recording.stacks[id - 1];
	for (unsigned i = 0; i < stack->depth; i++)
		/* a return address is one past the place where a signal frame goes on */
		if (is_signal_return((const uint8_t *)(uintptr_t)(cuf_recording.frames[stack->first + i] - 1)))
			return true;
	return false;
}
