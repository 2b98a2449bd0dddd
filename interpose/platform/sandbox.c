/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a seccomp filter that the program has enabled since it started. The kernel states only
 * that there is one. Where one was there from the start, a second one shows by the calls that
 * enable it: an unprivileged program has to give up new privileges first.
 */
#include "interpose/platform/sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* true before cuf_sandbox_start: nothing can count as a change yet */
static bool filtered_at_start = true;

static bool had_no_new_privileges = true;
/* the program enabled a filter; it gave up new privileges, perhaps once more */
static bool is_enabled, gave_up;

/* Seccomp mode 1 kills at this call too, but in that mode no memory can be mapped either. */
static bool is_filtered(void) { return cuf_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) > 0; }

/* Without privileges, PR_SET_NO_NEW_PRIVS comes first. It is never undone. */
static bool has_no_new_privileges(void)
{
	return cuf_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) > 0;
}

void cuf_sandbox_start(void)
{
	filtered_at_start = is_filtered();
	had_no_new_privileges = has_no_new_privileges();
}

void cuf_sandbox_announced(bool by_filter)
{
	__atomic_store_n(by_filter ? &is_enabled : &gave_up, true, __ATOMIC_RELAXED);
}

bool cuf_sandbox_entered(void)
{
	if (__atomic_load_n(&is_enabled, __ATOMIC_RELAXED))
		return true;
	if (!is_filtered())
		return false;
	return !filtered_at_start || __atomic_load_n(&gave_up, __ATOMIC_RELAXED) ||
	       (!had_no_new_privileges && has_no_new_privileges());
}

long cuf_open(const char *path, int flags, int mode)
{
	if (cuf_sandbox_entered())
		return -ECANCELED;
	return cuf_sys_open(path, flags | O_CLOEXEC, mode);
}
