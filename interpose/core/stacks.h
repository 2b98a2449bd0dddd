/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned call stacks. Contract: the thread is entered. Returns the stack's id (its index + 1; at most 24 bits), 0
 * when the tables are full (counted) or the walk found nothing.
 */
#ifndef CUF_STACKS_H
#define CUF_STACKS_H

#include <stdint.h>
#include "interpose/core/thread.h"

/* Captures and interns the calling thread's stack, without frames at or below `above` (see walker.h). */
uint32_t cuf_stack_capture(struct cuf_thread_state *thread, uintptr_t above);

/* The same for the malloc family: the stack of the caller of a hook that is still running, from its
 * __builtin_frame_address(0). A stack that was seen a moment ago costs a fraction. */
uint32_t cuf_stack_capture_caller(struct cuf_thread_state *thread, const void *frame);

#endif
