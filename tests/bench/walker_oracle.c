/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the walker with libunwind inside real programs. Preload this library: at every
 * ORACLE_EVERY-th allocation of a thread (default 1; 0: at none) both walk the stack. With
 * ORACLE_USEC=N they also do so every N microseconds, at any instruction of a thread that has
 * allocated. At exit it prints one line on stderr:
 *
 *   walker_oracle: NAME[PID]: stacks N, frames F, equal N (both stopped N),
 *   stopped early N (reasons), longer N, differ N
 *
 * "both stopped": neither reached the outermost frame. "longer": libunwind stopped first, and the
 * frames up to there are the same. The first few differing stacks are printed frame by frame.
 * ORACLE_VERBOSE=N: the first N, and also those that one of the two did not finish. The exit status
 * stays the program's: read "differ 0".
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "interpose/abi/format.h"
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"
#include "interpose/record/recorder.h"
#include "interpose/stack/walker.h"

#define EXPORT __attribute__((visibility("default")))
#define TLS __thread __attribute__((tls_model("initial-exec")))
enum { FRAMES_MAX = 256 };

/* glibc's own allocator, under the names it keeps for interposers */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
EXPORT void *malloc(size_t bytes);
EXPORT void *calloc(size_t count, size_t bytes);
EXPORT void *realloc(void *old, size_t bytes);

static const char *const stop_names[CUF_STOP_MAX] = {
	[CUF_STOP_DEPTH] = "depth",
	[CUF_STOP_NO_RULE] = "no rule",
	[CUF_STOP_UNSUPPORTED] = "unsupported",
	[CUF_STOP_BOUNDS] = "bounds",
	[CUF_STOP_SIGNAL] = "signal",
};

static struct {
	unsigned long stacks, frames, equal, both_stopped, longer, differ, early[CUF_STOP_MAX],
		shown;
} totals;
#define COUNT(field, n) __atomic_fetch_add(&totals.field, (n), __ATOMIC_RELAXED)

static int (*unw_backtrace)(void **, int); /* NULL: not ready */
static unsigned long every = 1;
static unsigned long show_at_most = 3;
static bool verbose;

static TLS struct {
	bool busy, ready;
	unsigned long countdown;
	struct cuf_walker walker;
	uint64_t ours[FRAMES_MAX];
	void *theirs[FRAMES_MAX + 8];
} * thread;
/* its state is being made: that allocates nothing, but libunwind's first walk may */
static TLS bool making;

static void show_frame(const char *who, unsigned i, uint64_t addr)
{
	Dl_info info = {.dli_fname = "?"};
	int found = dladdr((void *)(uintptr_t)(addr - 1), &info);
	dprintf(2, "  %s %3u %#lx %s+%#lx %s\n", who, i, (unsigned long)addr,
	        found ? info.dli_fname : "?",
	        found ? (unsigned long)(addr - (uintptr_t)info.dli_fbase) : 0,
	        found && info.dli_sname ? info.dli_sname : "");
}

static void show(const char *what, uint8_t stop, unsigned ours, const void *const *theirs,
                 unsigned their_count, unsigned at)
{
	if (COUNT(shown, 1) >= show_at_most)
		return;
	struct cuf_rule rule = cuf_rule_compile(ours ? thread->ours[ours - 1] : 0);
	dprintf(2, "walker_oracle: %s at frame %u: ours %u (stop %u, last rule %u), libunwind %u\n",
	        what, at, ours, stop, rule.kind, their_count);
	for (unsigned i = at > 2 ? at - 2 : 0; i < at + 4; i++) {
		if (i < ours)
			show_frame("ours     ", i, thread->ours[i]);
		if (i < their_count)
			show_frame("libunwind", i, (uintptr_t)theirs[i]);
	}
}

/* What libunwind saw, without this library's frames. */
static unsigned their_frames(void)
{
	int count = unw_backtrace(thread->theirs, FRAMES_MAX + 8);
	unsigned kept = 0;
	for (int i = 0; i < count; i++)
		if (!cuf_modules_is_self((uintptr_t)thread->theirs[i] - 1))
			thread->theirs[kept++] = thread->theirs[i];
	return kept;
}

/* A signal's two frames are written with the interrupted address + 1, so that "the instruction
 * before" is always right. On aarch64, and before its release 1.4, libunwind gives the address
 * before each return address, and before a signal's frame. */
static bool same(uint64_t ours, const void *theirs)
{
	return ours - (uintptr_t)theirs <= 2;
}

static __attribute__((noinline)) void judge(void *frame)
{
	uint8_t stop;
	unsigned theirs = their_frames(), at = 0;
	unsigned ours = cuf_walk(&thread->walker, cuf_modules_generation(), (uintptr_t)frame,
	                         thread->ours, FRAMES_MAX, &stop);
	const void *const *seen = (const void *const *)thread->theirs;
	COUNT(stacks, 1);
	COUNT(frames, ours);
	while (at < ours && at < theirs && same(thread->ours[at], seen[at]))
		at++;
	if (at == ours && (ours == theirs || stop == CUF_STOP_DEPTH)) {
		COUNT(equal, 1);
		if (stop != CUF_STOP_END && stop != CUF_STOP_DEPTH) {
			COUNT(both_stopped, 1);
			if (verbose)
				show("both stopped", stop, ours, seen, theirs, at);
		}
	} else if (at == ours && ours) {
		COUNT(early[stop], 1);
		if (verbose)
			show("stopped early", stop, ours, seen, theirs, at);
	} else if (at == theirs) {
		COUNT(longer, 1);
		if (verbose)
			show("longer", stop, ours, seen, theirs, at);
	} else {
		COUNT(differ, 1);
		show("DIFFERS", stop, ours, seen, theirs, at);
	}
}

static void on_allocation(void *frame)
{
	int kept = errno;
	if (!unw_backtrace || making || (thread && (thread->busy || !every || --thread->countdown)))
		return;
	making = true;
	if (!thread && (thread = __libc_calloc(1, sizeof *thread)))
		thread->ready = !cuf_walker_init(&thread->walker, gettid() == getpid());
	if (thread && thread->ready) {
		thread->busy = true;
		judge(frame);
		thread->busy = false;
		thread->countdown = every;
	}
	making = false;
	errno = kept;
}

void *malloc(size_t bytes)
{
	void *p = __libc_malloc(bytes);
	on_allocation(__builtin_frame_address(0));
	return p;
}

void *calloc(size_t count, size_t bytes)
{
	void *p = __libc_calloc(count, bytes);
	on_allocation(__builtin_frame_address(0));
	return p;
}

void *realloc(void *old, size_t bytes)
{
	void *p = __libc_realloc(old, bytes);
	on_allocation(__builtin_frame_address(0));
	return p;
}

/* Any instruction of the program, or of libc: what interrupts the two walkers themselves is left
 * out. */
static void on_time(int signal)
{
	int kept = errno;
	(void)signal;
	if (unw_backtrace && !making && thread && thread->ready && !thread->busy) {
		thread->busy = true;
		judge(__builtin_frame_address(0));
		thread->busy = false;
	}
	errno = kept;
}

static void start_timer(long usec)
{
	struct sigaction action = {.sa_handler = on_time, .sa_flags = SA_RESTART | SA_ONSTACK};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	struct itimerspec interval = {.it_interval = {usec / 1000000, usec % 1000000 * 1000}};
	timer_t timer;
	interval.it_value = interval.it_interval;
	sigaction(SIGPROF, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &interval, NULL))
		dprintf(2, "walker_oracle: no timer\n");
}

static __attribute__((constructor)) void start(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	const char *text = getenv("ORACLE_EVERY");
	if (text)
		every = strtoul(text, NULL, 10);
	if ((text = getenv("ORACLE_VERBOSE"))) {
		verbose = true;
		show_at_most = strtoul(text, NULL, 10);
	}
	cuf_modules_init(NULL);
	if (!library)
		dprintf(2, "walker_oracle: no libunwind.so.8\n");
	else
		unw_backtrace = (int (*)(void **, int))dlsym(library, "unw_backtrace");
	if (unw_backtrace && (text = getenv("ORACLE_USEC")))
		start_timer(strtol(text, NULL, 10));
}

static __attribute__((destructor)) void end(void)
{
	char reasons[200] = "";
	unsigned long early = 0;
	size_t used = 0;
	unw_backtrace = NULL;
	for (unsigned i = 0; i < CUF_STOP_MAX; i++) {
		early += totals.early[i];
		if (totals.early[i] && used < sizeof reasons)
			used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s %lu",
			                         used ? ", " : "",
			                         stop_names[i] ? stop_names[i] : "end",
			                         totals.early[i]);
	}
	dprintf(2,
	        "walker_oracle: %s[%d]: stacks %lu, frames %lu, equal %lu (both stopped %lu), stopped early %lu%s%s%s, longer %lu, "
	        "differ %lu\n",
	        program_invocation_short_name, (int)getpid(), totals.stacks, totals.frames,
	        totals.equal, totals.both_stopped, early, used ? " (" : "", reasons,
	        used ? ")" : "", totals.longer, totals.differ);
}
