/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that share this process's memory and are no threads of the C library. What the recorder
 * keeps of a thread is in its thread-local storage, so a task that runs with another thread's needs
 * care:
 * - A vfork child runs while its parent waits. It uses the parent's words, which must be the
 *   parent's before: a slot that the child took would be taken for a dead thread's afterwards.
 * - A task of clone without CLONE_SETTLS and CLONE_VFORK runs at the same time as its parent.
 * A task with thread-local storage of its own is recorded like a thread.
 *
 * The real functions may return twice, or read arguments from the stack. So they are jumped to.
 */
#include <errno.h>
#include <sched.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"

/* Taking a slot is what makes the words this thread's. */
static __attribute__((noinline)) void before_sharing(bool at_once)
{
	if (__builtin_expect(!cuf_real.clone || !cuf_real.vfork, 0))
		cuf_real_resolve();
	if (cuf_process_is_recorded(true) && at_once)
		cuf_thread_words_are_shared();
}

static __attribute__((noinline, cold)) int no_such_function(void)
{
	errno = ENOSYS;
	return -1;
}

/* The arguments behind the sixth are where the caller left them. */
CUF_JUMPS int cuf_hook_clone(cuf_task_fn run, void *stack, int flags, void *argument,
			     void *parent_tid, void *tls)
{
	if (flags & CLONE_VM)
		before_sharing(!(flags & (CLONE_SETTLS | CLONE_VFORK)));
	else if (!cuf_real.clone)
		cuf_real_resolve();
	if (!cuf_real.clone)
		return no_such_function();
	return cuf_real.clone(run, stack, flags, argument, parent_tid, tls);
}

CUF_JUMPS int cuf_hook_vfork(void)
{
	before_sharing(false);
	if (!cuf_real.vfork)
		return no_such_function();
	return cuf_real.vfork();
}
