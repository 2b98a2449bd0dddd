/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack walker: return addresses of the calling thread, innermost first, without locks, allocation or system
 * calls once a code address was seen. DWARF call-frame rules are compiled to 16 bytes a return address and cached per
 * thread; the first sight of an address reads .eh_frame through _dl_find_object.
 *
 * Contract: never reads outside [the current stack pointer, walker->stack_high) except for the module's own mapped
 * .eh_frame; never faults on code without unwind information, damaged rules, fibers or alternate stacks: it stops early
 * and says why. errno is untouched. One walker belongs to one thread; not reentrant (the caller guards).
 */
#ifndef CUF_WALKER_H
#define CUF_WALKER_H

#include <stdint.h>

struct cuf_rule;

struct cuf_walker {
	struct cuf_rule *rules;      /* cache of 1 << CUF_RULE_BITS entries, mapped by init; NULL: could not be had */
	uintptr_t stack_low, stack_high; /* bounds of the thread's own stack */
	uint64_t generation;         /* of the modules the rules were made for; changed: the cache is dropped */
};

/* Finds the bounds of the calling thread's stack without locks or /proc: __libc_stack_end for the main thread, the
 * thread control block for others. Maps the rule cache. 0, or -errno (the walker is then still safe: empty stacks). */
int cuf_walker_init(struct cuf_walker *walker, int is_main_thread);
void cuf_walker_fini(struct cuf_walker *walker);

/*
 * Writes at most max return addresses to frames and returns their number. Frames whose canonical frame address is at
 * or below `above` are left out (the recorder's own, and the runtime's); frames inside this library are left out
 * wherever they are. *stop: enum cuf_stop of format.h. generation: cuf_modules_generation() of now.
 */
unsigned cuf_walk(struct cuf_walker *walker, uint64_t generation, uintptr_t above, uint64_t *frames, unsigned max, uint8_t *stop);

#endif
