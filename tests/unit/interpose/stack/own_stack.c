/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a thread's stack, against what the C library says of it. */
#include "interpose/stack/own_stack.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cmocka.h>

enum { GIVEN_BYTES = 128 << 10 };

struct seen {
	struct cuf_own_stack found;
	uintptr_t start, end, here;
	size_t guard_bytes;
};

static void *look(void *to)
{
	struct seen *seen = to;
	pthread_attr_t attributes;
	void *start;
	size_t bytes;

	seen->found = cuf_own_stack_find(0);
	seen->here = (uintptr_t)__builtin_frame_address(0);
	assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
	assert_int_equal(pthread_attr_getstack(&attributes, &start, &bytes), 0);
	assert_int_equal(pthread_attr_getguardsize(&attributes, &seen->guard_bytes), 0);
	pthread_attr_destroy(&attributes);
#if defined __aarch64__ /* at least that much is mapped, whatever the attributes say */
	if (seen->guard_bytes < 64 << 10)
		seen->guard_bytes = 64 << 10;
#endif
	seen->start = (uintptr_t)start;
	seen->end = seen->start + bytes;
	return NULL;
}

static struct seen look_in_thread(const pthread_attr_t *attributes)
{
	struct seen seen;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, attributes, look, &seen), 0);
	pthread_join(thread, NULL);
	return seen;
}

/* The guard is part of the memory that belongs to the thread. */
static void assert_right(const struct seen *seen)
{
	assert_true(seen->found.floor <= seen->start);
	assert_true(seen->start - seen->found.floor <= seen->guard_bytes);
	assert_true(seen->found.top > seen->here && seen->found.top < seen->end);
}

static void threads_of_all_sizes(void **state)
{
	pthread_attr_t attributes;

	(void)state;
	pthread_attr_init(&attributes);
	for (size_t bytes = 16 << 10; bytes <= 64 << 20; bytes *= 2) {
		struct seen seen;

		pthread_attr_setstacksize(&attributes, bytes);
		pthread_attr_setguardsize(&attributes, bytes % 3 * 4096);
		seen = look_in_thread(&attributes);
		assert_right(&seen);
	}
	pthread_attr_destroy(&attributes);
}

static void a_stack_that_the_program_gives(void **state)
{
	char *slab = mmap(NULL, 3 * GIVEN_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	struct seen seen;

	(void)state;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, slab + GIVEN_BYTES, GIVEN_BYTES);
	seen = look_in_thread(&attributes);
	assert_int_equal(seen.found.floor, (uintptr_t)slab + GIVEN_BYTES);
	assert_true(seen.found.top < (uintptr_t)slab + 2 * GIVEN_BYTES);
	munmap(slab, 3 * GIVEN_BYTES);
	pthread_attr_destroy(&attributes);
}

static void the_main_thread(void **state)
{
	const struct rlimit before = { 8 << 20, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
	struct cuf_own_stack found;
	struct rlimit kept;

	(void)state;
	getrlimit(RLIMIT_STACK, &kept);
	setrlimit(RLIMIT_STACK, &before);
	found = cuf_own_stack_find(1);
	assert_true(found.top > (uintptr_t)__builtin_frame_address(0));
	assert_int_equal(found.top - found.floor, 8 << 20);
	if (!setrlimit(RLIMIT_STACK, &none))
		assert_int_equal(cuf_own_stack_find(1).floor, 0);
	setrlimit(RLIMIT_STACK, &kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_main_thread),
		cmocka_unit_test(threads_of_all_sizes),
		cmocka_unit_test(a_stack_that_the_program_gives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
