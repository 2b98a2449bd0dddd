/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a reading of allocators is made, and where its records go: to the recording, or to the
 * process that waits for a copy of itself.
 *
 * Contract: one reading at a time. errno untouched.
 */
#ifndef CUF_ALLOCATOR_COPY_H
#define CUF_ALLOCATOR_COPY_H

#include <stddef.h>
#include <stdint.h>

/* A record of the reading, as cuf_note. */
void cuf_allocator_deliver(unsigned type, uint64_t number, const char *text, size_t bytes);

/*
 * Makes the reading in a copy of this process and delivers its records. Nothing is delivered when
 * the copy does not answer in time, cannot be made, or would take long to make.
 */
void cuf_allocator_read_in_copy(void (*read)(void *), void *argument, uint64_t resident_bytes);

#endif
