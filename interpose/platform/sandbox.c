/* SPDX-License-Identifier: Apache-2.0 */
/* Notices a seccomp filter that the program has enabled since it started. */
#include "interpose/platform/sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* true before cuf_sandbox_start: nothing can count as a change yet */
static bool filtered_at_start = true;

/* Seccomp mode 1 kills at this call too, but in that mode no memory can be mapped either. */
static bool is_filtered(void) { return cuf_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) > 0; }

void cuf_sandbox_start(void) { filtered_at_start = is_filtered(); }

bool cuf_sandbox_entered(void) { return !filtered_at_start && is_filtered(); }

long cuf_open(const char *path, int flags, int mode)
{
	if (cuf_sandbox_entered())
		return -ECANCELED;
	return cuf_sys_open(path, flags | O_CLOEXEC, mode);
}
