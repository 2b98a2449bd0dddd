/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory that may not be mapped. Contract: the kernel checks each page before the load, so
 * nothing faults. A page that another thread unmaps in between is the one exception. About 100 ns
 * a page. Works also where a sandbox refuses process_vm_readv. Any thread; errno untouched.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/platform/sys.h"

/*
 * The kernel copies the new mask before it rejects the invalid `how`. So the call changes
 * nothing, and only an unreadable page answers EFAULT. Page 0 would mean "no mask".
 */
static inline bool cuf_readable_page(uintptr_t page)
{
	return page && cuf_sys(SYS_rt_sigprocmask, ~0, (long)page, 0, 8, 0, 0) != -EFAULT;
}

/*
 * Copies bytes that may not be readable. false: some are not, and *to is untouched. The loop is
 * no memcpy, because sanitizers replace memcpy by one that checks whether the program may read
 * there.
 */
static inline __attribute__((no_sanitize("address", "thread", "undefined"))) bool
cuf_readable_copy(void *to, uintptr_t from, size_t bytes)
{
	if (from + bytes < from)
		return false;
	for (uintptr_t page = from & ~(uintptr_t)4095; page < from + bytes; page += 4096)
		if (!cuf_readable_page(page))
			return false;
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)to)[i] = ((const volatile unsigned char *)from)[i];
	return true;
}
