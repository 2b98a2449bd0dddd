/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of the allocators in this process, and what the kernel says is resident, written into META at moments that
 * matter. Contract: never on a hot path, never inside malloc, never on the way out by abort or _exit (a lock may be held
 * for ever); errno untouched. A reading takes the allocator's own locks one after another, as malloc_info and mallctl do,
 * so nothing is read on a stack that a signal broke into: there the broken code may hold one.
 */
#ifndef CUF_ALLOCATOR_H
#define CUF_ALLOCATOR_H

#include "interpose/abi/format.h"

/* From the constructor: which allocator is behind us. */
void cuf_allocator_introduce(void);

/* The books of now. frame: __builtin_frame_address(0) of the hook. CUF_MOMENT_INCIDENT is paced: a program that fails
 * requests by the thousand pays for few readings. */
void cuf_allocator_read(enum cuf_moment moment, void *frame);

/* True when this code belongs to the allocator behind us. */
int cuf_allocator_holds(const void *addr);

#endif
