/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the walker's tests share: one stack as the walker and as libunwind see it. Included once by each test program; without
 * libunwind, comparing tests are skipped.
 */
#ifndef WALKER_FIXTURE_H
#define WALKER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "interpose/abi/format.h"
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/walker.h"

#define NOINLINE __attribute__((noinline, noclone))
enum { MAX = 512 };

static int (*oracle)(void **, int); /* unw_backtrace; NULL: not installed */
static struct cuf_walker walker;
static uint64_t frames[MAX];
static void *expected[MAX];
static unsigned count, cap = MAX;
static int expected_count;
static uint8_t stop;

/* Both views of the caller's stack. Their first frames differ: two places in this function. */
static NOINLINE void look(void)
{
	expected_count = oracle ? oracle(expected, MAX) : 0;
	count = cuf_walk(&walker, cuf_modules_generation(), 0, frames, cap, &stop);
}

/* A signal's frames are written as the instruction's address + 1 here, as the address itself by libunwind. */
static bool same_frame(uint64_t ours, uint64_t theirs, bool signals)
{
	return ours == theirs || (signals && ours == theirs + 1);
}

static void assert_agrees(bool signals)
{
	unsigned shared = count < (unsigned)expected_count ? count : (unsigned)expected_count;
	assert_true(count > 1);
	if (!oracle)
		skip();
	for (unsigned i = 1; i < shared; i++)
		if (!same_frame(frames[i], (uintptr_t)expected[i], signals))
			fail_msg("frame %u of %u: %#lx, libunwind %p (of %d)", i, count, (unsigned long)frames[i],
				expected[i], expected_count);
	if (count < cap)
		assert_int_equal(count, expected_count);
}

static bool holds_address_of(void *function, uint64_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (frames[i] - (uintptr_t)function < bytes)
			return true;
	return false;
}

typedef void body(void);

static int set_up(void **state)
{
#if defined __SANITIZE_THREAD__ /* does not outlive libunwind's thread destructors */
	void *library = NULL;
#else
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
#endif
	if (library)
		oracle = (int (*)(void **, int))dlsym(library, "unw_backtrace");
	cuf_modules_init(NULL);
	return cuf_walker_init(&walker, 1);
}

static int tear_down(void **state)
{
	cuf_walker_fini(&walker);
	return 0;
}

#endif
