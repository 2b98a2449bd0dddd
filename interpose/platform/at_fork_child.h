/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a forked child must forget. A file that keeps private state about the current recording (a
 * cache, a "was written once" flag) names one function here, and the child runs all of them
 * before its own recording begins.
 *
 * Contract: a function only resets memory of its own file: no lock, no allocation, no event. The
 * functions run in no particular order, on one thread, with the gate closed. The list is a
 * section of the library, put together by the linker: nothing is registered at run time, and no
 * file needs to know another one.
 */
#pragma once

typedef void cuf_at_fork_child_fn(void);

/* At file scope: CUF_AT_FORK_CHILD(forget_levels); */
#define CUF_AT_FORK_CHILD(function) \
	static cuf_at_fork_child_fn *const cuf_at_fork_child_##function \
		__attribute__((used, section("cuf_at_fork_child"))) = (function)

void cuf_at_fork_child_run(void);

/* What pthread_atfork calls, which each object has a copy of; NULL in another C library. The
 * child's function runs before the program's own code does, also where that has no event. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
			     void *object) __attribute__((weak));
