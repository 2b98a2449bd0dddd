/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The letter of the malloc family: results, errno, alignment, contents, unusual arguments. Prints
 * one line a rule, the same with and without the recorder. What a rule leaves open is printed as it
 * is. Functions that libc may lack (cfree, the sized frees) are looked up. With any argument those
 * are left out, and pvalloc: other allocators lack them, and mixing libc's with theirs crashes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOO_MUCH ((size_t)PTRDIFF_MAX - 4096)

static volatile size_t
	half_of_all = SIZE_MAX / 2,
	all = SIZE_MAX; /* volatile: the compiler must not see the overflow that is asked for */
/* nor forget a block that a refused resize left alone */
static char *volatile kept;

static int other_allocator;

static void rule(const char *what, int holds) { printf("%s %s\n", holds ? "yes" : "NO ", what); }

static int failed_with(const void *p, int error)
{
	int seen = errno;
	errno = 0;
	return !p && seen == error;
}

static void odd_sizes(void)
{
	void *a = malloc(0), *b = malloc(0);
	rule("malloc(0) gives blocks of their own", a && b && a != b);
	free(a);
	free(b);
	errno = 0;
	rule("malloc of too much: ENOMEM", failed_with(malloc(TOO_MUCH), ENOMEM));
	rule("calloc overflow: ENOMEM", failed_with(calloc(half_of_all, 3), ENOMEM));
	rule("reallocarray overflow: ENOMEM",
	     failed_with(reallocarray(NULL, half_of_all, 3), ENOMEM));
	unsigned char *zeroed = calloc(1000, 7);
	size_t sum = 0;
	for (size_t i = 0; i < 7000; i++)
		sum += zeroed[i];
	rule("calloc zeroes", sum == 0);
	free(zeroed);
}

static void resizing(void)
{
	char *p = kept = malloc(100), *q;
	memset(p, 'x', 100);
	errno = 0;
	q = realloc(p, TOO_MUCH);
	p = kept;
	rule("a refused realloc: ENOMEM, and the block is as it was",
	     failed_with(q, ENOMEM) && p[0] == 'x' && p[99] == 'x');
	q = reallocarray(p, half_of_all, 3);
	p = kept;
	rule("a refused reallocarray leaves the block", failed_with(q, ENOMEM) && p[99] == 'x');
	q = realloc(p, 100000);
	rule("realloc keeps the contents", q && q[0] == 'x' && q[99] == 'x');
	p = reallocarray(q, 10, 5);
	rule("reallocarray keeps the contents", p && p[49] == 'x');
	q = realloc(p, 0);
	rule("realloc(p, 0) frees", !q);
	p = realloc(NULL, 10);
	rule("realloc(NULL, n) allocates", p != NULL);
	free(p);
}

static void alignments(void)
{
	void *p = (void *)1;
	long page = sysconf(_SC_PAGESIZE);
	errno = 0;
	rule("posix_memalign(3): EINVAL, pointer untouched, errno too",
	     posix_memalign(&p, 3, 10) == EINVAL && p == (void *)1 && errno == 0);
	rule("posix_memalign(4): EINVAL", posix_memalign(&p, 4, 10) == EINVAL && p == (void *)1);
	rule("posix_memalign of too much: ENOMEM, pointer untouched",
	     posix_memalign(&p, 64, TOO_MUCH) == ENOMEM && p == (void *)1);
	for (size_t alignment = sizeof(void *); alignment <= 1 << 20; alignment *= 4) {
		int ok = posix_memalign(&p, alignment, 100) == 0 && (uintptr_t)p % alignment == 0;
		free(p);
		p = memalign(alignment, 100);
		ok = ok && p && (uintptr_t)p % alignment == 0;
		free(p);
		p = aligned_alloc(alignment, alignment * 2);
		ok = ok && p && (uintptr_t)p % alignment == 0;
		free(p);
		printf("%s aligned to %zu\n", ok ? "yes" : "NO ", alignment);
	}
	errno = 0;
	rule("aligned_alloc of too much: ENOMEM", failed_with(aligned_alloc(64, TOO_MUCH), ENOMEM));
	p = valloc(10);
	rule("valloc", p && (uintptr_t)p % (uintptr_t)page == 0);
	free(p);
	if (other_allocator)
		return;
	p = pvalloc(10);
	rule("pvalloc rounds up to a page",
	     p && (uintptr_t)p % (uintptr_t)page == 0 && malloc_usable_size(p) >= (size_t)page);
	free(p);
}

static void frees(void)
{
	static const char *const spellings[] = { "cfree", "free_sized", "free_aligned_sized" };
	void *p = malloc(1000);
	rule("malloc_usable_size", malloc_usable_size(p) >= 1000 && malloc_usable_size(NULL) == 0);
	errno = 4711;
	free(p);
	free(NULL);
	rule("free keeps errno", errno == 4711);
	p = malloc(32 << 20);
	errno = 4711;
	free(p);
	rule("free of a map keeps errno", errno == 4711);
	for (unsigned i = 0; !other_allocator && i < sizeof spellings / sizeof *spellings; i++) {
		void (*other_free)(void *, size_t, size_t) =
			(void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, spellings[i]);
		/* sizes match what free_aligned_sized may demand; ignored by the others */
		p = malloc(64);
		if (other_free)
			other_free(p, i == 2 ? 16 : 64, 64);
		else
			free(p);
		printf("yes %s, where there is one\n", spellings[i]);
	}
}

/* ---- what the rules leave open: as libc does it, to the byte ---- */

static size_t alignment_of(const void *p)
{
	return p ? (size_t)1 << __builtin_ctzl((uintptr_t)p) : 0;
}

/* One call: NULL or how large, whether aligned as asked for, and errno. */
static void show(const char *call, size_t asked, void *p)
{
	int error = errno;
	printf("%s: %s %zu %s errno %d\n", call, p ? "usable" : "NULL", malloc_usable_size(p),
	       alignment_of(p) >= asked ? "aligned" : "-", error);
	free(p);
	errno = 4711;
}

#define SHOW(asked, call) show(#call, asked, call)

static void odd_arguments(void)
{
	void *p = (void *)1;
	errno = 4711;
	SHOW(16, malloc(0));
	SHOW(16, malloc(1));
	SHOW(16, malloc(24));
	SHOW(16, malloc(25));
	SHOW(16, malloc(all));
	SHOW(16, malloc(half_of_all));
	SHOW(16, malloc(200000));
	SHOW(16, calloc(0, 0));
	SHOW(16, calloc(0, 10));
	SHOW(16, calloc(10, 0));
	SHOW(16, calloc(half_of_all, 2));
	SHOW(16, calloc(half_of_all + 1, 2));
	SHOW(16, realloc(NULL, 0));
	SHOW(16, realloc(malloc(100), 1));
	SHOW(16, realloc(malloc(100), 100));
	SHOW(16, realloc(malloc(0), 5000));
	SHOW(16, realloc(malloc(300000), 40));
	SHOW(16, realloc(malloc(300000), 3000000));
	SHOW(16, realloc(memalign(4096, 100), 5000));
	SHOW(16, realloc(malloc(10), 0));
	SHOW(16, reallocarray(NULL, 0, 10));
	SHOW(16, reallocarray(NULL, 3, 7));
	SHOW(16, reallocarray(malloc(10), 10, 0));
	SHOW(64, aligned_alloc(64, 0));
	SHOW(64, aligned_alloc(64, 65));
	SHOW(4096, aligned_alloc(4096, 1));
	SHOW(4096, memalign(4096, 0));
	SHOW(1, memalign(1, 10));
	if (other_allocator)
		return;
	SHOW(48, memalign(48, 10));
	SHOW(1, memalign(0, 10));
	SHOW(1, memalign(half_of_all + 2, 10));
	SHOW(16, memalign(16, all));
	SHOW(48, aligned_alloc(48, 96));
	SHOW(1, aligned_alloc(0, 10));
	SHOW(4096, valloc(0));
	SHOW(4096, valloc(all - 100));
	SHOW(4096, pvalloc(0));
	SHOW(4096, pvalloc(all - 100));
	SHOW(4096, pvalloc(4097));
	for (size_t alignment = 0; alignment < 70; alignment++) {
		int result = posix_memalign(&p, alignment, alignment % 3 * 100);
		int error = errno;
		const char *outcome = "-";
		if (!result)
			outcome = alignment_of(p) >= alignment ? "aligned" : "NOT";
		printf("posix_memalign(%zu): %d %s errno %d\n", alignment, result, outcome, error);
		free(result ? NULL : p);
	}
}

/* Where each of some thousand blocks lies, and how large it is. */
static void layout(void)
{
	enum { SLOTS = 300 };
	char *slots[SLOTS] = { NULL }, *first = malloc(1);
	unsigned long hash = 5381, random = 1;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned slot = (unsigned)((random = random * 6364136223846793005ul +
		                                     1442695040888963407ul) >>
		                           40) %
		                SLOTS;
		size_t bytes = random >> 50 & (i % 16 ? 511 : 16383);
		switch (random >> 33 & 3) {
		case 0: slots[slot] = realloc(slots[slot], bytes + 1); break;
		case 1: free(slots[slot]); slots[slot] = calloc(1, bytes); break;
		case 2:
			free(slots[slot]);
			slots[slot] = memalign((size_t)16 << i % 6, bytes);
			break;
		default: free(slots[slot]); slots[slot] = malloc(bytes); break;
		}
		hash = (hash * 33 ^ (unsigned long)(slots[slot] - first)) * 33 ^
		       malloc_usable_size(slots[slot]);
	}
	for (unsigned i = 0; i < SLOTS; i++)
		free(slots[i]);
	free(first);
	printf("places and sizes of 20000 blocks: %016lx\n", hash);
}

/* In an arena of its own: the main one's free blocks depend on what libc did before main. */
static void *to_the_byte(void *unused)
{
	odd_arguments();
	if (!other_allocator)
		layout();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	other_allocator = argc > 1;
	odd_sizes();
	resizing();
	alignments();
	frees();
	return pthread_create(&thread, NULL, to_the_byte, NULL) || pthread_join(thread, NULL);
}
