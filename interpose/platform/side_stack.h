/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that needs more stack than a hook may take from the program's thread: it runs on a mapping
 * of its own. A thread may have 16 KiB in all, a signal's alternate stack 8.
 *
 * Contract: any thread, any handler; no lock, no allocator. Some 10 ns, and a mapping when more
 * than four threads are on such stacks. run must return. It must not walk the program's stack,
 * which is not below its own frame. errno is untouched by the change of stacks.
 */
#pragma once

#include <stdbool.h>

/*
 * Returns false, and run is not called, when no memory can be had. In a sandbox, where a filter may
 * kill for mmap, run is called on a stack that was mapped before, else on the thread's own.
 */
bool cuf_on_side_stack(void (*run)(void *argument), void *argument);
