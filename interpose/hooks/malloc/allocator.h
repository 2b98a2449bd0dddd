/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the allocators in this process, and resident memory as the kernel reports it,
 * written to META at a few moments.
 *
 * Contract: never on a hot path, never inside malloc, and never when the process ends by abort or
 * _exit. errno untouched. glibc's heap is read without locks. Other allocators take theirs, and so
 * does the loader for its list of objects: they are asked at the end only, in a copy of the
 * process, for a limited time.
 */
#ifndef CUF_ALLOCATOR_H
#define CUF_ALLOCATOR_H

#include "interpose/abi/format.h"

/* From the constructor: which allocator is behind us. */
void cuf_allocator_describe(void);

/* The statistics of this moment. Readings at CUF_MOMENT_INCIDENT are paced: a program that fails
 * thousands of requests pays for few. */
void cuf_allocator_read(enum cuf_moment moment);

#endif
