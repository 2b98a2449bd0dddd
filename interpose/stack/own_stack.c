/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pthread_getattr_np would tell both ends, but it allocates, and for the main thread it opens a
 * file. The C library keeps the answer in the thread's control block: two neighbouring words, the
 * lowest address of the stack and its size. Their place differs between versions, so they are
 * recognized by what they must be.
 */
#include "interpose/stack/own_stack.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include "interpose/platform/readable.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* The stack's start as ld.so saw it. Weak, so that ld.so is not linked. */
extern void *__libc_stack_end __attribute__((weak));

enum {
	PAGE = 4096,
	/* of the control block; in glibc 2.31 to 2.41 the two words are within its first 1800 */
	BLOCK_BYTES = 2048,
	/* from the thread pointer to the end of the stack: some programs have much static TLS */
	ABOVE_BYTES_MAX = 1 << 20,
	STACK_BYTES_MIN = 4096
};

#if defined __aarch64__
static const bool block_is_below = true; /* TLS variant 1: the block ends at the thread pointer */
#else
static const bool block_is_below = false;
#endif

/*
 * Do these two words tell where the stack with this thread pointer in it begins, and its size? A
 * size is no more than the address, which a small number next to a pointer is not.
 */
static bool is_stack(uintptr_t start, uintptr_t bytes, uintptr_t thread)
{
	return start < thread && bytes >= STACK_BYTES_MIN && bytes <= start &&
	       bytes > thread - start && bytes - (thread - start) <= ABOVE_BYTES_MAX;
}

/* The lowest address of the stack, or `unknown`. */
static uintptr_t find_floor(uintptr_t thread, uintptr_t unknown)
{
	uintptr_t from = block_is_below ? thread - BLOCK_BYTES : thread, end = from + BLOCK_BYTES;

	/* the block of a task that is no thread of the C library may be shorter */
	if (!cuf_readable_page(from & ~(uintptr_t)(PAGE - 1)) ||
	    !cuf_readable_page((end - 1) & ~(uintptr_t)(PAGE - 1)))
		return unknown;
	for (uintptr_t at = from; at + 2 * sizeof at <= end; at += sizeof at) {
		const uintptr_t *words = (const uintptr_t *)at;

		if (is_stack(words[0], words[1], thread))
			return words[0];
	}
	return unknown;
}

/*
 * The main thread's stack grows, and the kernel leaves a gap below it. Without a limit only that
 * gap ends it.
 */
static uintptr_t main_floor(uintptr_t top)
{
	struct rlimit64 limit;

	if (cuf_sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit, 0, 0) ||
	    limit.rlim_cur >= top)
		return 0;
	return top - (uintptr_t)limit.rlim_cur;
}

/* The control block is at the top of a thread's stack. Only the main thread's is elsewhere. */
struct cuf_own_stack cuf_own_stack_find(int is_main_thread)
{
	static uintptr_t main_thread; /* first set by the constructor, in the true main thread */
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer(), top;

	if (is_main_thread && !main_thread)
		main_thread = thread;
	if (thread != main_thread)
		return (struct cuf_own_stack){ thread, find_floor(thread, thread) };
	top = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	return (struct cuf_own_stack){ top, main_floor(top) };
}
