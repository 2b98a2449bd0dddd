/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the front door (recorder.h) for CPython's own allocator. Contract as there. bytes are
 * whole pages.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * True when a private anonymous map of so many bytes is an arena for objects. code: who makes it.
 * It is the interpreter, or a tool that passes its call on (memray): then size and GIL tell.
 */
bool cuf_python_makes_arena(const void *code, uint64_t bytes);

/*
 * An arena of so many bytes was made (below 0: unmapped). The calling thread may be inside of the
 * interpreter's allocator.
 */
void cuf_python_arena(int64_t bytes);

/* From malloc's slow path: the wrappers are put in, where they are due and no arena is made. */
void cuf_python_objects_poll(void);
