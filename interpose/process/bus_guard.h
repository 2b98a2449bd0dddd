/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that disappears while it is mapped. Whoever truncates the file, punches holes into it
 * on a full disk, or takes its file system away makes the next access to it SIGBUS. The guard is a
 * handler of SIGBUS: a fault in the recording puts private memory in its place and turns the
 * recorder off (CUF_FAULT_CUT), and the program goes on. Every other SIGBUS is the program's.
 *
 * What the program sees is what it would see without the guard. It is installed when a file is
 * about to be mapped, with the flags and the mask of the program's own action, so the kernel treats
 * the program's handler as always: mask, alternate stack, SA_NODEFER, SA_RESETHAND. sigaction and
 * signal (hooks/process/signals.c) show and change the program's action. Without one, a SIGBUS that
 * is not ours ends the process by itself, with its own status and core.
 *
 * Contract: async-signal-safe, no lock, errno as sigaction leaves it. Not guarded: threads that
 * block SIGBUS (the kernel ends the process whatever the action is), processes that ignore it (what
 * they start must inherit that), and programs that set the action by a raw system call or by
 * sysv_signal and its kin.
 */
#pragma once

#include <stdbool.h>

struct sigaction;
typedef int cuf_sigaction_fn(int number, const struct sigaction *action, struct sigaction *old);

/* glibc's, under a name that nobody interposes. NULL: another libc. */
extern cuf_sigaction_fn __sigaction __attribute__((weak));

/* Before a file is mapped; once in a process's life. */
void cuf_bus_guard_begin(void);

/* True from then on: actions of SIGBUS are set by cuf_bus_guard_action. */
bool cuf_bus_guard_is_on(void);

/* sigaction(SIGBUS, action, old) of the program. next: what the hook would call. */
int cuf_bus_guard_action(cuf_sigaction_fn *next, const struct sigaction *action,
			 struct sigaction *old);
