/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call by which a program confines itself: the recorder opens no file behind a filter that may
 * kill for it (platform/sandbox.h). A filter may also be enabled by syscall(SYS_seccomp), which is
 * not hooked: its arguments reach the stack, so passing them on is no plain jump. Giving up new
 * privileges comes first, though, and that is a prctl.
 */
#include <errno.h>
#include <sys/prctl.h>
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"

/* While the real functions are being searched, an allocator may start and come here. */
static __attribute__((noinline, cold)) int call_kernel(int option, long a, long b, long c, long d)
{
	long result = cuf_sys(SYS_prctl, option, a, b, c, d, 0);

	if (!cuf_sys_failed(result))
		return (int)result;
	errno = (int)-result;
	return -1;
}

/* A vfork child confines itself, not its parent. A forked one begins a recording of its own now. */
static __attribute__((noinline, cold)) void announce(bool by_filter)
{
	if (cuf_process_is_recorded(true))
		cuf_sandbox_announced(by_filter);
}

int cuf_hook_prctl(int option, long a, long b, long c, long d)
{
	if (__builtin_expect(option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS, 0))
		announce(option == PR_SET_SECCOMP);
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.prctl), 0))
		cuf_real_resolve();
	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.prctl), 0))
		return call_kernel(option, a, b, c, d);
	return cuf_real.prctl(option, a, b, c, d);
}
