/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the calling thread's own stack begins and ends: the memory that stays mapped as long as
 * the thread lives. Contract: no lock, no allocation, no /proc; at most three system calls; errno
 * untouched. It reads the thread's control block, which lies on that stack.
 */
#pragma once

#include <stdint.h>

struct cuf_own_stack {
	/* exclusive; 0: unknown */
	uintptr_t top;
	/*
	 * The lowest address that can belong to it, its guard included. top where the lower end
	 * cannot be known: then no part of it is known to be the thread's.
	 */
	uintptr_t floor;
};

/*
 * is_main_thread: true in the constructor at least, where the main thread is remembered. The
 * answer also holds for the thread that survives a fork.
 */
struct cuf_own_stack cuf_own_stack_find(int is_main_thread);
