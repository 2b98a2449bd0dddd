/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Python frames add to a stack. Loaded into an interpreter (ctypes) and called under any
 * number of frames. measure() prints CPU nanoseconds a stack, medians of 9 alternating rounds:
 * native, and with Python frames, walked and merged each time, or recognised as the stack before.
 * survive() is for tests/e2e/stacks/python_frames.tap: it walks with wrong layouts in this interpreter,
 * each in its own child where nothing was walked before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "interpose/code/modules.h"
#include "interpose/python/python_parts.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/stacks.h"
#include "interpose/process/thread.h"

enum { ROUNDS = 9, REPEATS = 20000, DEPTH_MAX = 64, METHODS = 6 };

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void measure(const char *what, char *options);
EXPORTED unsigned survive(unsigned layouts, unsigned *on);

static struct cuf_thread_state *thread;
static unsigned depth, python_depth;

static __attribute__((noinline)) void native_walk(void)
{
	uint8_t stop;
	depth = cuf_walk(&thread->stack.walker, cuf_modules_generation(), 0, thread->stack.frames,
	                 DEPTH_MAX, &stop);
	__asm__ volatile("");
}

static __attribute__((noinline)) void merged_walk(void)
{
	uint8_t stop;
	uint64_t python = cuf_python_gather(thread->stack.slot_index, DEPTH_MAX);
	unsigned merged = cuf_walk(&thread->stack.walker, cuf_modules_generation(), 0,
	                           thread->stack.frames, DEPTH_MAX, &stop);
	const struct cuf_native_stack native = { thread->stack.frames,
		                                 thread->stack.walker.cache->frame_sp, merged };
	if (python)
		merged = cuf_python_merge(thread->stack.slot_index, &native, DEPTH_MAX, &stop);
	python_depth = 0;
	for (unsigned i = 0; i < merged; i++)
		python_depth += (unsigned)cuf_frame_is_python(thread->stack.frames[i]);
}

static __attribute__((noinline)) void native_known(void)
{
	struct cuf_walked walked = { .frames = thread->stack.frames };
	if (!cuf_walk_cached(&thread->stack.walker, cuf_modules_generation(),
	                     __builtin_frame_address(0), DEPTH_MAX, &walked))
		*walked.id = 1;
	__asm__ volatile("");
}

static __attribute__((noinline)) void merged_known(void)
{
	cuf_stack_capture_caller(&thread->stack, __builtin_frame_address(0), false);
	__asm__ volatile("");
}

static __attribute__((noinline)) void gathered(void)
{
	cuf_python_gather(thread->stack.slot_index, DEPTH_MAX);
	__asm__ volatile("");
}

static __attribute__((noinline)) void captured(void)
{
	cuf_stack_capture(&thread->stack, 0);
	__asm__ volatile("");
}

static void (*const methods[METHODS])(void) = { native_walk,  merged_walk, native_known,
	                                        merged_known, gathered,    captured };

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

void measure(const char *what, char *options)
{
	char *environment[] = { options, NULL };
	double ns[METHODS][ROUNDS];
	cuf_recorder_start(environment);
	thread = cuf_thread_enter();
	if (!thread)
		return;
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned m = 0; m < METHODS; m++) {
			double begin = now_ns();
			for (unsigned i = 0; i < REPEATS; i++)
				methods[m]();
			ns[m][round] = (now_ns() - begin) / REPEATS;
		}
	for (unsigned m = 0; m < METHODS; m++)
		qsort(ns[m], ROUNDS, sizeof *ns[m], by_size);
#define MEDIAN(m) ns[m][ROUNDS / 2]
	printf("Python %s: %2u frames over %2u native ones: reading %3.0f ns; to a native walk of %4.0f ns it adds %4.0f ns, merged anew %4.0f ns; "
	       "to a native stack recognised in %3.0f ns %3.0f ns\n",
	       what, python_depth, depth, MEDIAN(4), MEDIAN(0), MEDIAN(5) - MEDIAN(0),
	       MEDIAN(1) - MEDIAN(0), MEDIAN(2), MEDIAN(3) - MEDIAN(2));
	fflush(stdout);
	cuf_thread_leave(thread);
}

static void be_wrong(struct cuf_python_layout *layout, unsigned i)
{
	uint16_t *fields = &layout->type;
	size_t count = (sizeof *layout - offsetof(struct cuf_python_layout, type)) / sizeof *fields;
	srandom(i);
	for (long wrong = random() % 3 + 1; wrong; wrong--)
		fields[(size_t)random() % count] = (uint16_t)(random() % 3 ? random() % 64 * 8
		                                                           : random() % 4096);
}

/* Captures with the i-th wrong layout as it would be met at start: in a child. */
static int capture_wrongly(unsigned i)
{
	pid_t child = fork();
	int status = -1;
	if (!child) {
		struct cuf_thread_state *t;
		be_wrong(&cuf_python.layout, i);
		cuf_python.walks = cuf_python_walks_for(&cuf_python.layout, false);
		alarm(20);
		for (unsigned n = 0; n < 300 && (t = cuf_thread_enter()); n++) {
			cuf_stack_capture(&t->stack, 0);
			cuf_thread_leave(t);
		}
		_exit(cuf_python.on ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status;
}

/* Returns how many of so many wrong layouts ended the process; *on: how many were wrong in a way
 * that did not matter. */
unsigned survive(unsigned layouts, unsigned *on)
{
	static char *environment[] = { "CUFLIGHT_OPTIONS=stack_depth=64:size=4MiB", NULL };
	unsigned ended = 0;
	cuf_recorder_start(environment);
	*on = 0;
	if (!cuf_python.on)
		return layouts;
	for (unsigned i = 0; i < layouts; i++) {
		int status = capture_wrongly(i);
		*on += WIFEXITED(status) && !WEXITSTATUS(status);
		if (!WIFEXITED(status)) {
			ended++;
			fprintf(stderr, "layout %u: signal %d\n", i, WTERMSIG(status));
		}
	}
	return ended;
}
