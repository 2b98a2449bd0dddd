/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each family of allocators is asked for its books. Contract: a function adds "key=number\n" lines (keys:
 * abi/FORMAT.md) to a bounded text and returns whether there was anything to add; called by one thread at a time
 * (allocator.c sees to it), outside malloc. find: an exported function of that very allocator by its plain name, prefix
 * put in front; NULL when it is not exported.
 */
#ifndef CUF_ALLOCATOR_BOOKS_H
#define CUF_ALLOCATOR_BOOKS_H

#include <link.h>
#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/platform/say.h"

struct cuf_allocator {
	const char *prefix;          /* of its functions' names */
	const struct link_map *map;  /* borrowed: the object that has it */
	uintptr_t bias;
	const ElfW(Dyn) *dynamic;
};

void *cuf_allocator_function(const struct cuf_allocator *allocator, const char *name);

void cuf_books_add(struct cuf_text *text, const char *key, uint64_t value);
/* "KEY.CLASS=COUNT,BYTES" */
void cuf_books_class(struct cuf_text *text, const char *key, uint64_t class, uint64_t count, uint64_t bytes);

bool cuf_books_glibc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text);
bool cuf_books_jemalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text);
bool cuf_books_tcmalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text);
bool cuf_books_mimalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text);

void cuf_version_glibc(const struct cuf_allocator *allocator, struct cuf_text *text);
void cuf_version_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text);
void cuf_version_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text);

#endif
