/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to open a file in the recorder. A program may enable a seccomp filter after its
 * start and have the kernel kill whatever opens a file from then on. The recorder must not cause
 * that.
 *
 * Contract: cuf_sandbox_start comes first, in the constructor. A filter that exists by then (a
 * container's) let the dynamic linker open files, so it lets us. A second filter on top of it is
 * noticed by the program's prctl (hooks/process/seccomp.c), and when the program gave up new
 * privileges since the start. It is not noticed where the program is privileged (CAP_SYS_ADMIN) or
 * could not gain privileges from the start, and makes none of these calls through libc's prctl.
 * Any thread.
 *
 * A process that is forked while another thread has a file open has a copy of its descriptor. So
 * the last ones are kept in a table, and the child closes its copies.
 */
#pragma once

#include <stdbool.h>

void cuf_sandbox_start(void);

/* The program is about to enable a filter (by_filter), or to give up new privileges. */
void cuf_sandbox_announced(bool by_filter);

/* True once the program has enabled a filter that was not there at start, in any thread. */
bool cuf_sandbox_entered(void);

/* Returns a descriptor, or -errno; -ECANCELED in a sandbox. The flags get O_CLOEXEC. */
long cuf_open(const char *path, int flags, int mode);

/* Of a descriptor from cuf_open. */
void cuf_close(int fd);

/* In a forked child, before it has a thread: closes what it has of its parent's. A file of the
 * program that has such a number stays. */
void cuf_close_copies(void);
