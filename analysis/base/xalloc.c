/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that ends the command on exhaustion, and arenas of 64 KiB chunks. */
#include "analysis/base/xalloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
	if (p)
		return p;
	fputs("cuflight: out of memory\n", stderr);
	exit(2);
}

static size_t product(size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all))
		checked(NULL);
	return all + !all; /* malloc(0) may return NULL */
}

void *xalloc_bytes(size_t bytes) { return checked(malloc(bytes + !bytes)); }
void *xalloc_zeroed(size_t count, size_t bytes)
{
	return checked(calloc(1, product(count, bytes)));
}

void *xalloc_aligned_zeroed(size_t alignment, size_t bytes)
{
	return memset(checked(aligned_alloc(alignment, bytes)), 0, bytes);
}

void *xalloc_resize(void *p, size_t count, size_t bytes)
{
	return checked(realloc(p, product(count, bytes)));
}
char *xalloc_string(const char *text) { return checked(strdup(text)); }

/* items is the address of any pointer to objects: memcpy reads and writes it, since a cast to void
 * ** would break the aliasing rules. */
void xalloc_grow(void *items, size_t count, size_t *room, size_t bytes)
{
	void *p;
	if (count < *room)
		return;
	*room = 2 * *room + 16;
	memcpy(&p, items, sizeof p);
	p = xalloc_resize(p, *room, bytes);
	memcpy(items, &p, sizeof p);
}

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGNMENT 16

struct arena_chunk {
	struct arena_chunk *next;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

struct arena {
	pthread_mutex_t lock; /* of all that follows */
	struct arena_chunk *chunks;
	unsigned char *at;
	size_t left;
};

struct arena *arena_new(void)
{
	struct arena *arena = xalloc_zeroed(1, sizeof *arena);

	pthread_mutex_init(&arena->lock, NULL);
	return arena;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	pthread_mutex_destroy(&arena->lock);
	free(arena);
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
	struct arena_chunk *chunk = xalloc_bytes(sizeof *chunk + bytes);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

/* Large objects get a chunk of their own, so the rest of the current chunk stays usable. */
static void *take_bytes(struct arena *arena, size_t all)
{
	void *p;
	if (all > CHUNK_BYTES / 4)
		return add_chunk(arena, all)->bytes;
	if (all > arena->left) {
		arena->at = add_chunk(arena, CHUNK_BYTES)->bytes;
		arena->left = CHUNK_BYTES;
	}
	p = arena->at;
	arena->at += all;
	arena->left -= all;
	return p;
}

void *arena_zeroed(struct arena *arena, size_t count, size_t bytes)
{
	size_t all = product(count, bytes);
	void *p;
	if (all > SIZE_MAX - CHUNK_BYTES)
		checked(NULL);
	all = (all + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	pthread_mutex_lock(&arena->lock);
	p = take_bytes(arena, all);
	pthread_mutex_unlock(&arena->lock);
	return memset(p, 0, all);
}

char *arena_text(struct arena *arena, const char *text, size_t bytes)
{
	char *copy = arena_zeroed(arena, bytes + 1, 1);
	if (bytes)
		memcpy(copy, text, bytes);
	return copy;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list arguments;
	char *text, *copy;
	int length;
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		checked(NULL);
	copy = arena_text(arena, text, (size_t)length);
	free(text);
	return copy;
}

void *arena_copy(struct arena *arena, const void *items, size_t count, size_t bytes)
{
	if (!count)
		return NULL;
	return memcpy(arena_zeroed(arena, count, bytes), items, count * bytes);
}
