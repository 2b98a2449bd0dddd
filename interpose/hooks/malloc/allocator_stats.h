/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of each family of allocators, and the text they are written to.
 *
 * Contract: a cuf_stats_* function of a family adds "key=number" lines (keys: abi/FORMAT.md) to a
 * bounded text. It returns whether it had anything to add. allocator.c calls them outside malloc,
 * on one thread at a time.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/platform/say.h"

struct cuf_allocator {
	const char *prefix;          /* of its functions' names: "" or, e.g., "je_" */
	uintptr_t bias;              /* load bias and dynamic section of its object */
	const ElfW(Dyn) *dynamic;
	uint64_t most_ns;            /* for a walk over its heap: somebody waits */
};

/* The exported function of this allocator with this plain name, or NULL. */
void *cuf_allocator_function(const struct cuf_allocator *allocator, const char *name);

/* ---- lines ---- */

void cuf_stats_add(struct cuf_text *text, const char *key, uint64_t value);
void cuf_stats_add_word(struct cuf_text *text, const char *key, const char *word);
/* "KEY.CLASS=COUNT,BYTES" */
void cuf_stats_add_class(struct cuf_text *text, const char *key, uint64_t class, uint64_t count,
			 uint64_t bytes);

/* ---- families: a row in allocator.c each ---- */

bool cuf_stats_glibc(const struct cuf_allocator *allocator, struct cuf_text *text);
bool cuf_stats_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text);
bool cuf_stats_tcmalloc(const struct cuf_allocator *allocator, struct cuf_text *text);
bool cuf_stats_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text);

void cuf_version_glibc(const struct cuf_allocator *allocator, struct cuf_text *text);
void cuf_version_jemalloc(const struct cuf_allocator *allocator, struct cuf_text *text);
void cuf_version_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text);
