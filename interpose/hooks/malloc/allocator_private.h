/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects with an allocator of their own, under other names. They are noticed when code of theirs
 * is on a stack that is captured, so the thread that notices them is inside them.
 *
 * Contract: any thread, no lock. Between cuf_allocator_private_begin and _end none of them goes: a
 * dlclose waits for the end, which takes a millisecond, and for a second at most.
 */
#pragma once

#include "interpose/hooks/malloc/allocator_family.h"

enum { CUF_PRIVATE_MAX = 8 };

struct cuf_private_allocator {
	const struct cuf_allocator_family *family; /* NULL: none here any more */
	struct cuf_allocator allocator;
	uintptr_t start, end;                      /* of the object */
	const char *object;
	bool is_named;                             /* it has a record */
	struct cuf_meta *records[2];
	unsigned next;
};

/* As the recorder's listener of new objects. */
void cuf_allocator_private_see(uintptr_t bias, const ElfW(Dyn) *dynamic);

/* The table of CUF_PRIVATE_MAX, for one thread at a time; NULL: a dlclose goes on. */
struct cuf_private_allocator *cuf_allocator_private_begin(void);
void cuf_allocator_private_end(void);

/* Around a dlclose. */
void cuf_allocator_unload_begin(void);
void cuf_allocator_unload_end(void);
