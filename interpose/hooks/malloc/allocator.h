/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the allocators in this process, and resident memory as the kernel reports it,
 * written to META at a few moments.
 *
 * Contract: never on a hot path, never inside malloc, and never when the process ends by abort or
 * _exit. errno untouched. glibc's heap is read without locks. Other allocators take theirs, one
 * after another. At the end they are asked in a copy of the process, for a limited time. At an
 * incident they are asked here, but not on a stack that a signal interrupted: the interrupted code
 * may hold a lock.
 */
#ifndef CUF_ALLOCATOR_H
#define CUF_ALLOCATOR_H

#include "interpose/abi/format.h"

/* From the constructor: which allocator is behind us. */
void cuf_allocator_describe(void);

/* The statistics of this moment. frame: __builtin_frame_address(0) of the hook. Readings at
 * CUF_MOMENT_INCIDENT are paced: a program that fails thousands of requests pays for few. */
void cuf_allocator_read(enum cuf_moment moment, void *frame);

#endif
