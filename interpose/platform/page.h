/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's pages: 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64. Any thread; errno untouched. */
#pragma once

#include <stdint.h>
#include <sys/auxv.h>

static inline uintptr_t cuf_page_bytes(void)
{
#if defined __x86_64__
	return 4096;
#else
	static uintptr_t bytes;

	if (!bytes)
		bytes = getauxval(AT_PAGESZ);
	return bytes;
#endif
}
