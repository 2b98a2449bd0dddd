/* SPDX-License-Identifier: Apache-2.0 */
/* A detached thread, and a futex on which its caller waits. */
#include "interpose/hooks/cuda/bounded_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>
#include "interpose/hooks/loader/real.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum { RUNNING, DONE, LEFT, SIGNAL_SET_BYTES = 8, STACK_BYTES = 256 << 10 };

/* Exactly one of both sides finds the other one gone. */
static void *run_in_thread(void *argument)
{
	struct cuf_bounded_work *work = argument;

	cuf_sys(SYS_prctl, PR_SET_NAME, (long)"cuflight", 0, 0, 0, 0);
	work->run();
	if (__atomic_exchange_n(&work->state, DONE, __ATOMIC_ACQ_REL) == LEFT)
		work->late();
	else
		cuf_sys(SYS_futex, (long)&work->state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	return NULL;
}

struct functions {
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*set_stack)(pthread_attr_t *, size_t);
};

static void find_functions(void *to)
{
	struct functions *functions = to;

	functions->create = cuf_real_of_threads("pthread_create");
	functions->set_stack = cuf_real_of_threads("pthread_attr_setstacksize");
}

static bool start(struct cuf_bounded_work *work)
{
	uint64_t all = ~0ull, before = 0;
	struct functions functions = { NULL, NULL };
	pthread_attr_t attributes;
	pthread_t thread;
	bool is_started;

	cuf_on_side_stack(find_functions, &functions);
	if (!functions.create || !functions.set_stack || pthread_attr_init(&attributes))
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	functions.set_stack(&attributes, STACK_BYTES);
	/* the new thread inherits the mask: no handler of the program may run in it */
	cuf_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, SIGNAL_SET_BYTES, 0, 0);
	is_started = !functions.create(&thread, &attributes, run_in_thread, work);
	cuf_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, SIGNAL_SET_BYTES, 0, 0);
	pthread_attr_destroy(&attributes);
	return is_started;
}

enum cuf_bounded_end cuf_bounded_run(struct cuf_bounded_work *work, uint64_t limit_ns)
{
	const uint64_t until_ns = cuf_now_ns() + limit_ns;
	uint32_t running = RUNNING;

	__atomic_store_n(&work->state, RUNNING, __ATOMIC_RELAXED);
	if (!start(work))
		return CUF_BOUNDED_NO_THREAD;
	while (__atomic_load_n(&work->state, __ATOMIC_ACQUIRE) == RUNNING) {
		const uint64_t now_ns = cuf_now_ns(), left_ns = until_ns - now_ns;
		const struct timespec left = { (time_t)(left_ns / 1000000000u),
					       (long)(left_ns % 1000000000u) };

		if (now_ns >= until_ns)
			break;
		cuf_sys(SYS_futex, (long)&work->state, FUTEX_WAIT_PRIVATE, RUNNING, (long)&left, 0,
			0);
	}
	if (__atomic_compare_exchange_n(&work->state, &running, LEFT, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return CUF_BOUNDED_LEFT;
	return CUF_BOUNDED_DONE;
}
