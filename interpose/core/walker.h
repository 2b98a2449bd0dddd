/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack walker: return addresses of the calling thread, innermost first, without locks, allocation or system
 * calls once a code address was seen. DWARF call-frame rules are compiled to 16 bytes a return address and cached per
 * thread; the first sight of an address reads .eh_frame through _dl_find_object.
 *
 * Contract: reads the thread's own stack from the current stack pointer up to its top, and the .eh_frame segments of
 * loaded objects. All else (alternate signal stacks, fibers, what a damaged frame points to) is read through the kernel,
 * which refuses instead of faulting. So code without unwind information, damaged rules and foreign stacks cost frames,
 * never the process: the walk stops early and says why. errno is untouched. One walker belongs to one thread; not
 * reentrant (the caller guards). x86-64; elsewhere stacks are empty (CUF_STOP_UNSUPPORTED).
 */
#ifndef CUF_WALKER_H
#define CUF_WALKER_H

#include <stdint.h>

#define CUF_RULE_BITS 14 /* 256 KiB of address space a thread; touched as code addresses are seen */

struct cuf_rule;

struct cuf_walker {
	struct cuf_rule *rules; /* cache of 1 << CUF_RULE_BITS entries, mapped by init; NULL: could not be had */
	uintptr_t stack_low,
		stack_high; /* of the thread's own stack what is known to be readable; low moves down as it grows */
	uintptr_t other_low, other_high; /* where a walk last began on another stack: known not to reach ours */
	uint64_t generation;             /* of the modules the rules were made for; changed: the cache is dropped */
};

/* Finds the top of the calling thread's stack without locks or /proc: __libc_stack_end for the main thread, the thread
 * control block for others (also for a thread that became a forked child's only one). Maps the rule cache, once: a
 * walker starts zeroed, and one whose thread died may be initialised again. 0, or -errno (the walker is then still
 * safe: empty stacks). */
int cuf_walker_init(struct cuf_walker *walker, int is_main_thread);
void cuf_walker_fini(struct cuf_walker *walker);

/*
 * Writes at most max return addresses to frames and returns their number. Those lying on the stack at or below `above`
 * (__builtin_frame_address(0) of a hook; 0: none) are left out: the recorder's own, and the runtime's. So are those
 * inside this library, wherever they are. The instruction that a frame executes is the one before its address, also
 * where a signal arrived: there the address is one more than the interrupted instruction's.
 * *stop: enum cuf_stop of format.h. generation: cuf_modules_generation() of now.
 */
unsigned cuf_walk(
	struct cuf_walker *walker, uint64_t generation, uintptr_t above, uint64_t *frames, unsigned max, uint8_t *stop);

#endif
