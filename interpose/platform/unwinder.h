/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind in place of our own rules, as the option unwind=libunwind asks: the functions of the
 * library that hooks/loader/unwinder.c opened, which stack/unwinder.c calls.
 *
 * Contract: written once, before step; a thread that sees step sees the others. step NULL: not
 * asked for, not found, or another machine.
 */
#pragma once

#include <stdint.h>

/* As the words of the option unwind. */
enum cuf_unwind { CUF_UNWIND_CFI, CUF_UNWIND_LIBUNWIND, CUF_UNWIND_FP };

#define CUF_UNWINDER_SONAME "libunwind.so.8"

/*
 * From libunwind.h: libunwind's names carry the machine, and these are the numbers of the program
 * counter and of the stack pointer. Its context is libc's ucontext_t. UNW_TDEP_CURSOR_LEN is 127
 * words on x86-64 and 250 on aarch64 (1.6).
 */
#if defined __x86_64__
#define CUF_UNWINDER_NAME(function) "_ULx86_64_" function
#define CUF_UNWINDER_CONTEXT "_Ux86_64_getcontext"
enum { CUF_UNWINDER_IP = 16, CUF_UNWINDER_SP = 7, CUF_UNWINDER_CURSOR_BYTES = 2048 };
#elif defined __aarch64__
#define CUF_UNWINDER_NAME(function) "_ULaarch64_" function
#define CUF_UNWINDER_CONTEXT "getcontext" /* an inline function there; libc's is the same */
enum { CUF_UNWINDER_IP = 32, CUF_UNWINDER_SP = 31, CUF_UNWINDER_CURSOR_BYTES = 4096 };
#endif

struct cuf_unwinder {
	/* of the calling function; must be called by it */
	int (*context)(void *context);
	int (*init)(void *cursor, void *context);
	/* above 0: stands at the next frame; 0: there is none; below 0: cannot go on */
	int (*step)(void *cursor);
	int (*get)(void *cursor, int reg, uint64_t *value);
	/* above 0: the frame is the kernel's, of a signal */
	int (*is_signal)(void *cursor);
};

extern struct cuf_unwinder cuf_unwinder;
