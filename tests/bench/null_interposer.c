/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The minimum cost of every preloaded recorder: the malloc family, passed on to glibc's, and
 * nothing else. Every cost above this is the recorder's.
 */
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t);
void free(void *);

/* a recorder does something after the call, so these must not become jumps */
#define AFTER_THE_CALL() __asm__ volatile("" ::: "memory")
#define SEEN __attribute__((visibility("default")))

SEEN void *malloc(size_t bytes)
{
	void *p = __libc_malloc(bytes);
	AFTER_THE_CALL();
	return p;
}

SEEN void *calloc(size_t count, size_t bytes)
{
	void *p = __libc_calloc(count, bytes);
	AFTER_THE_CALL();
	return p;
}

SEEN void *realloc(void *old, size_t bytes)
{
	void *p = __libc_realloc(old, bytes);
	AFTER_THE_CALL();
	return p;
}

SEEN void free(void *p)
{
	__libc_free(p);
	AFTER_THE_CALL();
}
