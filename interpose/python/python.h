/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames of the calling thread, merged into its native stack. They are read from the
 * interpreter's structs, without the GIL, reference counts or allocation. Only a thread itself
 * pushes and pops its frames, so they do not change while it is here.
 *
 * Contract: no lock, no allocation except one mapping a thread, errno untouched. For gather and
 * merge the thread is inside the recorder, and slot is the index of its slot. Nothing faults on
 * an unexpected layout: the first walks read through the kernel, every frame is checked to lead
 * to a code object, and what does not fit turns Python frames off, with a note. One interpreter
 * library a process is supported.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* Of one stack. */
enum { CUF_PYTHON_FRAMES_MAX = 256 };

/* ---- life ---- */

/*
 * When a recording begins: searches the objects that are loaded. In a forked child: keeps what
 * was found before.
 */
void cuf_python_start(void);

/* An object was met for the first time. An interpreter that was loaded later is found here. */
void cuf_python_object_seen(uintptr_t bias, const ElfW(Dyn) *dynamic);

/*
 * Around a dlclose: an interpreter that may be unloaded is not read in between, and is searched
 * again afterwards. begin returns true when the caller must wait, before it closes, until no
 * thread is inside the recorder: one may be in the middle of a function of the interpreter.
 */
bool cuf_python_unload_begin(void);
void cuf_python_unload_end(void);

/* True from the moment at which the interpreter begins to shut down. */
bool cuf_python_is_finalizing(void);

/* ---- its allocators ---- */

/* PyMemAllocatorEx of all versions. */
struct cuf_python_allocator {
	void *context;
	void *(*allocate)(void *context, size_t bytes);
	void *(*zeroed)(void *context, size_t count, size_t bytes);
	void *(*resize)(void *context, void *p, size_t bytes);
	void (*release)(void *context, void *p);
};

enum cuf_python_domain { CUF_PYTHON_RAW, CUF_PYTHON_MEM, CUF_PYTHON_OBJECTS, CUF_PYTHON_DOMAINS };

/* PyMem_GetAllocator and PyMem_SetAllocator of the interpreter at this address. */
struct cuf_python_domains {
	uintptr_t interpreter;
	void (*get)(int domain, struct cuf_python_allocator *allocator);
	void (*set)(int domain, const struct cuf_python_allocator *allocator);
};

/*
 * False: no interpreter is read, it has no such functions, it is shutting down, or this thread does
 * not hold the GIL (in free-threaded builds: has no attached state). Only then may they be called.
 */
bool cuf_python_domains_here(struct cuf_python_domains *domains);

/* True when code is the interpreter's own. */
bool cuf_python_holds(const void *code);

/* The size of pymalloc's arenas in this version. */
uint64_t cuf_python_arena_size_bytes(void);

/* ---- stacks ---- */

/*
 * Looks at the thread's frames, innermost first, at most max. Returns a hash of them, which
 * identifies a stack that was merged before. 0: there are none, and merge must not be called.
 */
uint64_t cuf_python_gather(unsigned slot, unsigned max);

/* The native frames of the same thread, innermost first. */
struct cuf_native_stack {
	/* room for CUF_PYTHON_FRAMES_MAX */
	uint64_t *frames;
	/* the stack pointer at which each frame begins */
	const uintptr_t *frame_sp;
	unsigned depth;
};

/*
 * Replaces the interpreter's native frames by the gathered ones, with the same max. Returns the
 * new depth, at most max. *stop: enum cuf_stop of the walk, then of the whole stack.
 */
unsigned cuf_python_merge(unsigned slot, const struct cuf_native_stack *stack, unsigned max,
			  uint8_t *stop);

/*
 * Where the thread keeps the id of a merged stack. An id that is found again saves merging and
 * interning. The caller compares the key and fills in both. To be called after gather.
 */
struct cuf_python_merged {
	uint64_t key;
	uint32_t id;
};

struct cuf_python_merged *cuf_python_merged(unsigned slot, uint64_t key);
