/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, merged into its native stack. They are read from the interpreter's own structs,
 * without the GIL, reference counts or allocation: a thread's frames are pushed and popped by that thread alone, so they
 * hold still while it is here.
 *
 * Contract: no lock, no allocation but one mapping a thread, errno untouched. gather and merge: the thread is entered.
 * Nothing faults on a layout other than expected: what is met first is read through the kernel, frames are checked for
 * being code each time, and what does not fit switches Python frames off, with a note. One interpreter library a process.
 */
#ifndef CUF_PYTHON_H
#define CUF_PYTHON_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

enum { CUF_PYTHON_FRAMES_MAX = 256 }; /* of one stack */

/* When a recording begins: looks through the objects loaded by then (in a forked child: takes what was found before). */
void cuf_python_start(void);
/* An object was seen in a stack for the first time: an interpreter that was loaded later is found here. */
void cuf_python_object_seen(uintptr_t bias, const ElfW(Dyn) *dynamic);
/* In a forked child, before its recording begins: names are to be written again. */
void cuf_python_atfork_child(void);
/* Around a dlclose: an interpreter that may be unloaded is left alone meanwhile, and looked for again afterwards.
 * begin: true when the caller must wait, before it closes, until no thread is inside the recorder: one may be in the
 * middle of a function of the interpreter. */
bool cuf_python_unload_begin(void);
void cuf_python_unload_end(void);

/* Looks at the thread's frames, innermost first, at most max. Returns a hash of them, by which a stack that was merged
 * before is known; 0: none, and merge is not to be called. */
uint64_t cuf_python_gather(unsigned slot, unsigned max);

/* True from the moment on at which the interpreter begins to shut down. */
bool cuf_python_is_finalizing(void);

/* The native frames of the same thread, innermost first, with where on the stack each frame begins. */
struct cuf_native_stack {
	uint64_t *frames; /* room for CUF_PYTHON_FRAMES_MAX */
	const uintptr_t *frame_sp;
	unsigned depth;
};

/* Puts the gathered frames, with the same max, into the stack, in place of the interpreter's native ones. Returns the new
 * depth, at most max. *stop: enum cuf_stop of the walk, and of the whole. */
unsigned cuf_python_merge(unsigned slot, const struct cuf_native_stack *stack, unsigned max, uint8_t *stop);

/* Where the thread keeps the id of a merged stack: found again by all that it was made of, merging and interning are
 * saved. The caller compares the key and fills in both. After gather. */
struct cuf_python_merged { uint64_t key; uint32_t id; };
struct cuf_python_merged *cuf_python_merged(unsigned slot, uint64_t key);

#endif
