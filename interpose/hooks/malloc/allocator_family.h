/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of allocators: which one an object has, and its record for META.
 *
 * Contract: the object must stay mapped during the call. No lock of ours, no allocation; but the
 * statistics of a family that is not lock_free take its allocator's locks.
 */
#pragma once

#include "interpose/hooks/malloc/allocator_stats.h"

struct cuf_allocator_family {
	const char *name, *probe;
	const char *prefixes[5];
	bool lock_free;      /* its statistics are */
	bool (*stats)(const struct cuf_allocator *, struct cuf_text *);
	void (*version)(const struct cuf_allocator *, struct cuf_text *);
};

/* Sets the allocator's prefix. NULL: none, or glibc where but_glibc. */
const struct cuf_allocator_family *cuf_allocator_family(struct cuf_allocator *allocator,
							bool but_glibc);

/* Adds the keys of abi/FORMAT.md. family NULL: unknown. has_figures: with the statistics. */
void cuf_allocator_add(struct cuf_text *text, const struct cuf_allocator_family *family,
		       const struct cuf_allocator *allocator, const char *role,
		       const char *object, bool has_figures);
