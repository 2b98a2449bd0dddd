/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of this process, and how large a recording may be in it. Its memory counts against
 * limits that the program shares with us, so where they are low the recording is smaller than
 * size= asks for.
 *
 * Contract: system calls only, no allocation, errno untouched. Bytes.
 */
#pragma once

#include <stdint.h>

/* The size that a recording gets that begins now: at most cuf_options.size. */
uint64_t cuf_size_limit_apply(void);

/* One line on stderr when the last one that began is smaller than size= asks for; once. */
void cuf_size_limit_report(void);

/* The one of RLIMIT_* that is in force; CUF_UNKNOWN: none. A system call. */
uint64_t cuf_limit_bytes(int resource);
