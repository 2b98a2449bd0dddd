/* SPDX-License-Identifier: Apache-2.0 */
/* Signal 0 reaches no handler, but the kernel checks that the thread exists. */
#include "interpose/store/liveness.h"

#include <errno.h>
#include "interpose/platform/sys.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

bool cuf_thread_alive(uint32_t tid)
{
	return cuf_sys(SYS_tgkill, cuf_recording.header->pid, tid, 0, 0, 0, 0) != -ESRCH;
}
