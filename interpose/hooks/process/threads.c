/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The creation of threads. The new thread has to know who created it: it begins in a function of
 * ours, which jumps to the program's and so is on no stack. What this function needs is in a table,
 * since nothing may be allocated. While the table is full, threads begin in the program's function.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/side_stack.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"

/* A thread between its creation and its first instruction. */
struct birth {
	uint32_t is_taken;
	struct cuf_creation creation;
	cuf_start_fn run;
	void *argument;
};

enum { BIRTHS = 256 };
static struct birth births[BIRTHS];
static uint32_t search_from;

/* Threads of the parent are not born in its child. */
static void forget_births(void)
{
	for (unsigned i = 0; i < BIRTHS; i++)
		births[i].is_taken = 0;
}
CUF_AT_FORK_CHILD(forget_births);

/* NULL: all are taken. */
static struct birth *take_birth(void)
{
	uint32_t from = __atomic_fetch_add(&search_from, 1, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < BIRTHS; i++) {
		struct birth *birth = &births[(from + i) % BIRTHS];

		if (!__atomic_load_n(&birth->is_taken, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&birth->is_taken, 1, __ATOMIC_ACQUIRE))
			return birth;
	}
	return NULL;
}

static void give_back(struct birth *birth)
{
	__atomic_store_n(&birth->is_taken, 0, __ATOMIC_RELEASE);
}

/* The first function of a thread: a jump leaves its stack as it is without us. */
CUF_JUMPS static void *begin_thread(void *argument)
{
	const struct birth birth = *(struct birth *)argument;

	give_back(argument);
	cuf_thread_begins(birth.creation);
	return birth.run(birth.argument);
}

static void find_create(void *create)
{
	*(void **)create = cuf_real_of_threads("pthread_create");
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, cuf_start_fn, void *);

/* NULL: the C library's threads are in a library that is not loaded. */
static create_fn *real_create(void)
{
	void *create;

	if (__builtin_expect(!cuf_slot_load((void **)&cuf_real.pthread_create), 0))
		cuf_real_resolve();
	create = cuf_slot_load((void **)&cuf_real.pthread_create);
	if (!create)
		cuf_on_side_stack(find_create, &create);
	return (create_fn *)create;
}

int cuf_hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, cuf_start_fn run,
			    void *argument)
{
	create_fn *create = real_create();
	struct cuf_creation creation;
	struct birth *birth;
	int result;

	if (!create)
		return EAGAIN;
	creation = cuf_thread_created_here(__builtin_frame_address(0));
	birth = creation.stack ? take_birth() : NULL;
	if (!birth)
		return create(thread, attributes, run, argument);
	birth->creation = creation;
	birth->run = run;
	birth->argument = argument;
	result = create(thread, attributes, begin_thread, birth);
	if (result)
		give_back(birth);
	return result;
}
