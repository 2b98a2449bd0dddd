/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files of /proc and /sys, read whole. Contract: raw system calls, no descriptor kept, no
 * allocation.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The file, cut at bytes - 1 and NUL-terminated. Returns its length, or -errno. */
long cuf_proc_read(const char *path, char *to, size_t bytes);

/*
 * The decimal number behind `key` in the text, or at its start (NULL). CUF_UNKNOWN: no such key, or
 * no number there.
 */
uint64_t cuf_proc_number(const char *text, const char *key);
