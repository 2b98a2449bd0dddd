/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are opened through here alone, because a program may lock itself in after its start (seccomp) and have the kernel
 * kill whoever opens a file from then on: that must not be us.
 *
 * Contract: cuf_sandbox_start first, in the constructor. A filter that was there by then (a container's) let the dynamic
 * linker open files, so it lets us; whether a second one joined it cannot be known. Any thread.
 */
#ifndef CUF_SANDBOX_H
#define CUF_SANDBOX_H

#include <stdbool.h>

void cuf_sandbox_start(void);
bool cuf_sandbox_entered(void);
/* A descriptor, or -errno; -ECANCELED in a sandbox. The flags get O_CLOEXEC. */
long cuf_open(const char *path, int flags, int mode);

#endif
