/* SPDX-License-Identifier: Apache-2.0 */
/* Signal 0 reaches no handler, but the kernel checks that the thread exists. */
#include "interpose/store/liveness.h"

#include <errno.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static bool has_tasks;

static void forget_tasks(void) { __atomic_store_n(&has_tasks, false, __ATOMIC_RELAXED); }
CUF_AT_FORK_CHILD(forget_tasks);

void cuf_liveness_has_task(void) { __atomic_store_n(&has_tasks, true, __ATOMIC_SEQ_CST); }

/* Not kill, which asks for processes only: a task may have threads. */
bool cuf_thread_alive(uint32_t tid)
{
	if (cuf_sys(SYS_tgkill, cuf_recording.header->pid, tid, 0, 0, 0, 0) != -ESRCH)
		return true;
	return __atomic_load_n(&has_tasks, __ATOMIC_SEQ_CST) &&
	       cuf_sys(SYS_tkill, tid, 0, 0, 0, 0, 0) != -ESRCH;
}
