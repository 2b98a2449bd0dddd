/* SPDX-License-Identifier: Apache-2.0 */
/* By the kernel, or page by page. */
#include "interpose/platform/guarded_copy.h"

#include <errno.h>
#include <sys/uio.h>
#include "interpose/platform/readable.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum { PAGE = 4096 };

static size_t copy_pages(unsigned char *to, uintptr_t from, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		size_t part = PAGE - (from + done) % PAGE;

		if (part > bytes - done)
			part = bytes - done;
		if (!cuf_readable_copy(to + done, from + done, part))
			break;
		done += part;
	}
	return done;
}

size_t cuf_guarded_copy_part(void *to, uintptr_t from, size_t bytes)
{
	struct iovec local = { to, bytes }, remote = { (void *)from, bytes };
	long copied = -EPERM;

	if (!cuf_sandbox_entered())
		copied = cuf_sys(SYS_process_vm_readv, cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0),
				 (long)&local, 1, (long)&remote, 1, 0);
	if (copied == -EPERM || copied == -ENOSYS || copied == -EACCES)
		return copy_pages(to, from, bytes);
	return copied < 0 ? 0 : (size_t)copied;
}
