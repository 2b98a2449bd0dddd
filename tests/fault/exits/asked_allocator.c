/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator that looks like jemalloc, and says who asks while the process ends. Also
 * dl_iterate_phdr, which takes the loader's lock.
 */
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

int is_ending;

static void say(const char *text)
{
	if (is_ending && write(1, text, strlen(text)) < 0)
		_exit(2);
}

void *malloc(size_t bytes) { return __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return __libc_calloc(count, bytes); }
void *realloc(void *p, size_t bytes) { return __libc_realloc(p, bytes); }
void *memalign(size_t alignment, size_t bytes) { return __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return __libc_memalign(alignment, bytes); }
void free(void *p) { __libc_free(p); }

int mallctl(const char *name, void *old, size_t *bytes, void *new, size_t new_bytes)
{
	say("mallctl was called at the end\n");
	return 2;
}

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *context)
{
	say("dl_iterate_phdr was called at the end\n");
	return 0;
}
