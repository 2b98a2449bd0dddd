/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stacks WAY: allocates on unusual stacks: left by longjmp, made by makecontext, in signal
 * handlers, on an alternate stack, deeper than any cap, on the smallest stack of a thread. Prints
 * how often, and how deep it was (host_ways.h).
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include "tests/victims/host/host_ways.h"

/* ---- longjmp ---- */

static jmp_buf back;

static void pair_and_leave(size_t size)
{
	pair(size);
	longjmp(back, 1);
}

/* From every depth in turn, so that what is remembered of the stack is always of another one. */
static int by_longjmp(void)
{
	for (volatile unsigned round = 0; round < 200; round++) {
		volatile unsigned depth = 5 + round * 7 % 20;
		if (!setjmp(back))
			descend(depth, pair_and_leave, SIZE(depth));
		descend(2, pair, SIZE(1));
	}
	say_size(SIZE(1), 200, 200, 2);
	for (unsigned depth = 5; depth < 25; depth++)
		say_size(SIZE(depth), 10, 10, (int)depth);
	return 0;
}

/* ---- stacks of our own making ---- */

static ucontext_t outside, inside;

static void in_context(void)
{
	for (;;) {
		descend(9, pair, SIZE(2));
		swapcontext(&inside, &outside);
	}
}

static int by_makecontext(void)
{
	static char fixed[64 << 10];
	for (volatile unsigned i = 0; i < 40; i++) {
		char *volatile stack = i % 2 ? fixed
		                             : mmap(NULL, sizeof fixed, PROT_READ | PROT_WRITE,
		                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		getcontext(&inside);
		inside.uc_stack.ss_sp = stack;
		inside.uc_stack.ss_size = sizeof fixed;
		inside.uc_link = &outside;
		makecontext(&inside, in_context, 0);
		for (unsigned turn = 0; turn < 5; turn++) {
			swapcontext(&outside, &inside);
			descend(3, pair, SIZE(1));
		}
		if (stack != fixed)
			munmap(stack, sizeof fixed); /* the next one may lie there again */
	}
	say_size(SIZE(1), 200, 200, 3);
	say_size(SIZE(2), 200, 200, 9);
	return 0;
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void allocating_handler(int signal)
{
	descend(4, pair, SIZE(3));
	handled++;
}

static void raising(size_t size)
{
	pair(size);
	raise(SIGUSR1);
}

static int with_handler(int flags)
{
	struct sigaction action = { .sa_handler = allocating_handler, .sa_flags = flags };
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned i = 0; i < 100; i++)
		descend(i % 3 * 6, raising, SIZE(4));
	say_size(SIZE(3), 100, 100, -1); /* the run may go on below the signal frame */
	say_size(SIZE(4), 100, 100, -1);
	return handled == 100 ? 0 : 1;
}

static int by_signal(void) { return with_handler(0); }

static int by_alternate_stack(void)
{
	stack_t stack = { .ss_size = 64 << 10 };
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                   -1, 0);
	return sigaltstack(&stack, NULL) ? 1 : with_handler(SA_ONSTACK);
}

/* A timer fires while the program computes, and nowhere else: there a handler may allocate. */
static int by_timer(void)
{
	struct sigaction action = { .sa_handler = allocating_handler };
	struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every_ms, NULL);
	for (unsigned i = 0; i < 100; i++) {
		int before = handled;
		descend(i % 5, pair, SIZE(5));
		sigprocmask(SIG_UNBLOCK, &alarm, NULL);
		while (handled == before)
			;
		sigprocmask(SIG_BLOCK, &alarm, NULL);
	}
	say_size(SIZE(3), (unsigned)handled, (unsigned)handled, 4);
	say_size(SIZE(5), 100, 100, -1);
	return 0;
}

/* A handler that leaves by siglongjmp, over the frames of what it interrupted. */
static sigjmp_buf before_signal;

static void leaving_handler(int signal)
{
	pair(SIZE(6));
	siglongjmp(before_signal, 1);
}

static int by_siglongjmp(void)
{
	struct sigaction action = { .sa_handler = leaving_handler };
	sigaction(SIGUSR1, &action, NULL);
	for (volatile unsigned i = 0; i < 100; i++) {
		if (!sigsetjmp(before_signal, 1))
			descend(i % 4 * 5, raising, SIZE(4));
		descend(2, pair, SIZE(1));
	}
	say_size(SIZE(1), 100, 100, 2);
	say_size(SIZE(4), 100, 100, -1);
	say_size(SIZE(6), 100, 100, -1);
	return 0;
}

/* ---- depths ---- */

/* Deeper than any cap; what comes after is as deep as it is. */
static int by_deep_recursion(void)
{
	for (unsigned i = 0; i < 50; i++) {
		descend(2000 + i, pair, SIZE(7));
		descend(10, pair, SIZE(8));
		descend(400, pair, SIZE(7));
		descend(11, pair, SIZE(9));
	}
	say_size(SIZE(8), 50, 50, 10);
	say_size(SIZE(9), 50, 50, 11);
	say_size(SIZE(7), 100, 100, -1);
	return 0;
}

static void *on_small_stack(void *unused)
{
	for (unsigned i = 0; i < 20; i++)
		descend(5, pair, SIZE(10));
	return NULL;
}

static int by_small_stack(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)))
		return 1;
	for (unsigned i = 0; i < 10; i++) {
		if (pthread_create(&thread, &attributes, on_small_stack, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	say_size(SIZE(10), 200, 200, 5);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{ "longjmp", by_longjmp },
		{ "makecontext", by_makecontext },
		{ "signal", by_signal },
		{ "alternate_stack", by_alternate_stack },
		{ "timer", by_timer },
		{ "siglongjmp", by_siglongjmp },
		{ "deep_recursion", by_deep_recursion },
		{ "small_stack", by_small_stack },
	};
	say_process();
	return ways_main(argc, argv, ways, sizeof ways / sizeof *ways);
}
