/* SPDX-License-Identifier: Apache-2.0 */
/* A child without an exit signal, waited for by its id, with a limit. */
#include "interpose/hooks/malloc/process_copy.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "interpose/platform/clock.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"

enum { PAUSE_NS_FIRST = 20000, PAUSE_NS_MAX = 1000000, SIGNAL_SET_BYTES = 8 };
/* for the end of a copy that was killed */
#define KILLED_NS 1000000000ull

static void sleep_ns(uint64_t ns)
{
	struct timespec time = { 0, (long)ns };

	cuf_sys(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

/* True when it ended by itself, with its work done. */
static bool wait_until(long copy, uint64_t deadline_ns, bool *is_gone)
{
	uint64_t pause_ns = PAUSE_NS_FIRST;

	for (;;) {
		int status = -1;
		long waited = cuf_sys(SYS_wait4, copy, (long)&status, WNOHANG | __WALL, 0, 0, 0);

		*is_gone = waited == copy || waited == -ECHILD;
		if (*is_gone || cuf_now_ns() > deadline_ns)
			return waited == copy && status == 0;
		sleep_ns(pause_ns);
		if (pause_ns < PAUSE_NS_MAX)
			pause_ns *= 2;
	}
}

static bool wait_for(long copy, uint64_t limit_ns)
{
	bool is_gone, is_done = wait_until(copy, cuf_now_ns() + limit_ns, &is_gone);

	if (is_gone)
		return is_done;
	cuf_sys(SYS_kill, copy, SIGKILL, 0, 0, 0, 0);
	wait_until(copy, cuf_now_ns() + KILLED_NS, &is_gone);
	return false;
}

/* A handler of the program must not run in the copy, where it would do its work a second time. */
bool cuf_in_process_copy(void (*work)(void *), void *argument, uint64_t limit_ns)
{
	uint64_t all = ~0ull, before = 0;
	long copy;

	if (cuf_sandbox_entered() ||
	    cuf_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, SIGNAL_SET_BYTES, 0,
		    0))
		return false;
	copy = cuf_sys(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (!copy) {
		work(argument);
		for (;;) /* where it is forbidden to end, it is killed */
			cuf_sys(SYS_exit_group, 0, 0, 0, 0, 0, 0);
	}
	cuf_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, SIGNAL_SET_BYTES, 0, 0);
	return copy > 0 && wait_for(copy, limit_ns);
}
