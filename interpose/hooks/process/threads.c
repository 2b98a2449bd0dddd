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
#include "interpose/hooks/malloc/allocator.h"

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

/* NULL: all are taken, and that is counted. */
static struct birth *take_birth(void)
{
	uint32_t from = __atomic_fetch_add(&search_from, 1, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < BIRTHS; i++) {
		struct birth *birth = &births[(from + i) % BIRTHS];

		if (!__atomic_load_n(&birth->is_taken, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&birth->is_taken, 1, __ATOMIC_ACQUIRE))
			return birth;
	}
	cuf_note_dropped(CUF_LOST_SMALL);
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

typedef int create_fn(pthread_t *, const pthread_attr_t *, cuf_start_fn, void *);
typedef int create_c11_fn(pthread_t *, cuf_task_fn, void *);

static void find_create(void *create)
{
	*(void **)create = cuf_real_of_threads("pthread_create");
}

static void find_create_c11(void *create)
{
	*(void **)create = cuf_real_of_threads("thrd_create");
}

/* NULL: the C library's threads are in a library that is not loaded. */
static void *real_create(void **slot, void (*find)(void *create))
{
	void *create;

	if (__builtin_expect(!cuf_slot_load(slot), 0))
		cuf_real_resolve();
	create = cuf_slot_load(slot);
	if (!create)
		cuf_on_side_stack(find, &create);
	return create;
}

/* ---- a stack that was refused ---- */

typedef int stack_size_fn(const pthread_attr_t *, size_t *);

static void find_stack_size(void *get)
{
	*(void **)get = cuf_real_of_threads("pthread_attr_getstacksize");
}

/* 0: the one that threads have without attributes. */
static size_t stack_bytes(const pthread_attr_t *attributes)
{
	stack_size_fn *get = NULL;
	size_t bytes;

	if (attributes)
		cuf_on_side_stack(find_stack_size, &get);
	return get && !get(attributes, &bytes) ? bytes : 0;
}

static __attribute__((noinline, cold)) void refused(const pthread_attr_t *attributes, unsigned hook,
						    void *frame)
{
	int saved = errno;

	cuf_allocator_refused(stack_bytes(attributes), hook, EAGAIN, frame);
	errno = saved;
}

/* ---- the hooks ---- */

/* NULL: the thread begins in the program's function. */
static struct birth *birth_of(cuf_start_fn run, void *argument, void *frame)
{
	const struct cuf_creation creation = cuf_thread_created_here(frame);
	struct birth *birth = creation.stack ? take_birth() : NULL;

	if (birth) {
		birth->creation = creation;
		birth->run = run;
		birth->argument = argument;
	}
	return birth;
}

int cuf_hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, cuf_start_fn run,
			    void *argument)
{
	create_fn *create =
		(create_fn *)real_create((void **)&cuf_real.pthread_create, find_create);
	struct birth *birth;
	int result;

	if (!create)
		return EAGAIN;
	birth = birth_of(run, argument, __builtin_frame_address(0));
	if (birth)
		result = create(thread, attributes, begin_thread, birth);
	else
		result = create(thread, attributes, run, argument);
	if (result && birth)
		give_back(birth);
	if (__builtin_expect(result == EAGAIN, 0))
		refused(attributes, CUF_HOOK_pthread_create, __builtin_frame_address(0));
	return result;
}

/* C11's. Its function returns an int, in the register where a pointer would be. */
int cuf_hook_thrd_create(pthread_t *thread, cuf_task_fn run, void *argument)
{
	enum { ERROR = 2, NO_MEMORY = 3 }; /* thrd_error, thrd_nomem of glibc */
	create_c11_fn *create = (create_c11_fn *)real_create((void **)&cuf_real.thrd_create,
							     find_create_c11);
	struct birth *birth;
	int result;

	if (!create)
		return ERROR;
	birth = birth_of((cuf_start_fn)(void *)run, argument, __builtin_frame_address(0));
	if (birth)
		result = create(thread, (cuf_task_fn)(void *)begin_thread, birth);
	else
		result = create(thread, run, argument);
	if (result && birth)
		give_back(birth);
	if (__builtin_expect(result == ERROR || result == NO_MEMORY, 0))
		refused(NULL, CUF_HOOK_thrd_create, __builtin_frame_address(0));
	return result;
}
