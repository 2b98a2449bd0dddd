/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who created a thread. The stack of that call is a part of each stack of the thread: a library
 * works in threads of its own, and which line of the program made it do so is known at that moment
 * only, not at the thread's end.
 */
#include <errno.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/process/thread.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/laws.h"

enum {
	/* a thread that creates its successor, as timers do, makes no new stack each time */
	CHAIN_MAX = 3
};

struct cuf_creation cuf_thread_created_here(const void *frame)
{
	struct cuf_creation creation = { 0, 1 };
	int saved_errno = errno;
	struct cuf_thread_state *thread = cuf_thread_enter();
	uint32_t creator;

	if (!thread)
		return creation;
	creator = thread->stack.creator;
	if (cuf_tls.creators < CHAIN_MAX)
		creation.creators += cuf_tls.creators;
	else
		thread->stack.creator = 0;
	creation.stack = cuf_stack_capture_caller(&thread->stack, frame, true);
	thread->stack.creator = creator;
	cuf_thread_leave(thread);
	errno = saved_errno;
	return creation;
}

void cuf_thread_begins(struct cuf_creation creation)
{
	cuf_tls.creator = creation.stack;
	cuf_tls.creators = creation.creators;
	if (cuf_thread_is_attached()) /* the C library has allocated for the thread */
		cuf_tls.thread->stack.creator = creation.stack;
}
