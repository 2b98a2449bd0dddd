/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies memory that another thread may unmap at any moment. Contract: the kernel copies, so
 * nothing faults (process_vm_readv on this process). About a microsecond and the copy. Where a
 * sandbox refuses that call, pages are checked first (readable.h), so a page that disappears in
 * between faults. Any thread; no lock; errno untouched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many bytes could be read from `from` on: `bytes`, or fewer. */
size_t cuf_guarded_copy_part(void *to, uintptr_t from, size_t bytes);

/* All of them, or false. */
static inline bool cuf_guarded_copy(void *to, uintptr_t from, size_t bytes)
{
	return cuf_guarded_copy_part(to, from, bytes) == bytes;
}
