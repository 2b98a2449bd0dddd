/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heap memory for analysis/ only. A failed request ends the command with one line and status 2: a
 * report that has no room for its figures cannot print anything useful.
 *
 * Contract: never NULL, also for 0 bytes; products are checked for overflow; free with free(). An
 * arena holds many small objects that are freed together; it is not thread-safe.
 */
#pragma once

#include <stddef.h>

void *xalloc_bytes(size_t bytes);
void *xalloc_zeroed(size_t count, size_t bytes);
void *xalloc_aligned_zeroed(size_t alignment, size_t bytes); /* for types with extended alignment */
void *xalloc_resize(void *p, size_t count, size_t bytes);
char *xalloc_string(const char *text);

/* Makes room for one more element: grows *items, of `bytes` each, when count has reached *room. */
void xalloc_grow(void *items, size_t count, size_t *room, size_t bytes);

/* Several threads may allocate from one arena at the same time. */
struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is fine */
void *arena_zeroed(struct arena *arena, size_t count, size_t bytes); /* aligned for anything */
/* Copies a text and terminates it with NUL. */
char *arena_text(struct arena *arena, const char *text, size_t bytes);
char *arena_format(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A copy of an array; NULL when count is 0. */
void *arena_copy(struct arena *arena, const void *items, size_t count, size_t bytes);
