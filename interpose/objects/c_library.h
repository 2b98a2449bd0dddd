/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which C library this process has. The recorder knows glibc. In a process with another one it does
 * nothing, and its hooks pass calls on. Contract: no lock, no allocation, errno untouched; any
 * thread. Borrowed text.
 */
#pragma once

#include <link.h>
#include <stddef.h>

extern const char *gnu_get_libc_version(void) __attribute__((weak));
extern struct r_debug _r_debug __attribute__((weak));

/*
 * As "2.36". NULL: it is not glibc. Libraries that make another one look like glibc may define the
 * function, and have no loader of glibc.
 */
static inline const char *cuf_glibc_version(void)
{
	return gnu_get_libc_version && &_r_debug ? gnu_get_libc_version() : NULL;
}
