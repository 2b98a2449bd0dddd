/* SPDX-License-Identifier: Apache-2.0 */
/* Closes the gate, waits, moves the recording, opens the gate. */
#include "interpose/process/handover.h"

#include <errno.h>
#include <time.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/options.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/process/bus_guard.h"
#include "interpose/process/gate.h"
#include "interpose/process/identity.h"
#include "interpose/process/size_limit.h"
#include "interpose/store/fault.h"
#include "interpose/store/liveness.h"
#include "interpose/store/recording.h"
#include "interpose/store/seal.h"
#include "interpose/platform/laws.h"

/*
 * A thread that lost its processor while it was inside comes back well within a second, also on a
 * loaded machine.
 */
enum { PAUSE_NS = 50000 };

bool cuf_handover_pending;
static char **environment;
static bool reported;        /* a recording without a file is reported once in a process */
static unsigned pauses_left; /* of the process's life */
static bool moving;          /* a thread of this process is at it */
static int new_fd = -1;      /* of the file that is being made, and its name */
static char new_path[sizeof cuf_recording.path];

void cuf_handover_pause(void)
{
	struct timespec time = { 0, PAUSE_NS };
	cuf_sys(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

void cuf_handover_begin_recording(char **environment_at_start)
{
	environment = environment_at_start;
	pauses_left = CUF_HANDOVER_PAUSES_MAX;
	cuf_handover_pending = true;
}

/* ---- why there is no file ---- */

/* Fixed texts: strerror may allocate, and its words depend on the locale. */
static const char *error_words(int error)
{
	switch (error) {
	case ENOSPC:
		return "no space left on the device; free some, set a smaller "
		       "CUFLIGHT_OPTIONS=size=, or another CUFLIGHT_OUTPUT";
	case EROFS:
		return "read-only file system; set CUFLIGHT_OUTPUT to a writable directory";
	case EACCES:
	case EPERM:
		return "permission denied; set CUFLIGHT_OUTPUT to a writable directory";
	case ENOENT:
		return "no such directory; set CUFLIGHT_OUTPUT to a writable directory";
	case ENOTDIR:
		return "not a directory; set CUFLIGHT_OUTPUT to a writable directory";
	case EFBIG:
		return "file size limit (ulimit -f); raise it, or set a smaller "
		       "CUFLIGHT_OPTIONS=size=";
	case EMFILE:
	case ENFILE:
		return "too many open files";
	case ENOMEM:
		return "out of memory";
	case ENAMETOOLONG:
		return "the name is too long; set a shorter CUFLIGHT_OUTPUT";
	case ECANCELED:
		return "the program enabled a seccomp filter before the file was created; "
		       "set CUFLIGHT_OPTIONS=start=1";
	case ELOOP:
		return "a symbolic link is in the way; set another CUFLIGHT_OUTPUT";
	default:
		return NULL;
	}
}

/* "cannot create the recording 'PATH': reason; what to do" */
static void report_no_file(const char *what, int error)
{
	const char *words = error_words(error);
	CUF_TEXT(text, 1500);
	if (reported)
		return;
	reported = true;
	cuf_text_add(&text, what);
	cuf_text_add(&text, " '");
	cuf_text_add(&text, *new_path ? new_path : cuf_options.output);
	cuf_text_add(&text, "': ");
	if (words) {
		cuf_text_add(&text, words);
	} else {
		cuf_text_add(&text, "error ");
		cuf_text_number(&text, (uint64_t)error);
	}
	cuf_text_add(&text, " (recording continues in memory only)");
	cuf_say(&text);
}

/* ---- moving ---- */

/* One line on stderr, with the path of the recording. */
static void report_path(void)
{
	CUF_TEXT(text, 1200);
	cuf_text_add(&text, "recording to ");
	cuf_text_add(&text, cuf_recording.path);
	cuf_say(&text);
}

/* Creates the file. Other threads record meanwhile, however long that takes. */
static int open_file(const char **why)
{
	const struct cuf_name_parts names = {
		.pid = cuf_recording.header->pid,
		.epoch_s = cuf_recording.header->start_realtime_ns / 1000000000u,
		.host = cuf_process_host(),
		.executable = cuf_process_name(),
		.environment = environment,
	};

	cuf_process_describe(environment);
	new_fd = cuf_recording_open_file(&names, new_path, sizeof new_path, why);
	return new_fd < 0 ? new_fd : 0;
}

/* There is one attempt: a failure is reported, and the recording stays in memory. */
static void finish(int error, const char *why)
{
	cuf_handover_pending = false;
	if (!error) {
		cuf_size_limit_report();
		if (cuf_options.verbose)
			report_path();
	} else if (cuf_gate_state() != CUF_GATE_OFF) { /* a fault, which is reported already */
		report_no_file(why, -error);
	}
}

void cuf_handover_at_start(void)
{
	const char *why = "";
	int error = open_file(&why);

	if (!error) {
		cuf_bus_guard_begin();
		error = cuf_recording_to_file(new_fd, new_path, &why);
	}
	finish(error, why);
	new_fd = -1;
}

/* A child that was forked meanwhile closes its copy of the descriptor (platform/sandbox.h). */
static void forget_move(void)
{
	new_fd = -1;
	moving = false;
}
CUF_AT_FORK_CHILD(forget_move);

/* A thread that moves the recording sets `moving`, and reads nothing before gate_fence_threads. */
bool cuf_handover_is_ahead(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return cuf_handover_is_pending() && !__atomic_load_n(&moving, __ATOMIC_SEQ_CST);
}

static bool is_inside(const struct cuf_thread *slot)
{
	return __atomic_load_n(&slot->busy, __ATOMIC_SEQ_CST) && cuf_thread_alive(slot->tid);
}

/* Slots are assigned in order: the first one that never had a thread ends the search. */
static bool had_thread(unsigned index)
{
	return index < cuf_recording.thread_count &&
	       __atomic_load_n(&cuf_recording.threads[index].generation, __ATOMIC_RELAXED);
}

static bool somebody_is_inside(void)
{
	for (unsigned i = 0; had_thread(i); i++)
		if (is_inside(&cuf_recording.threads[i]))
			return true;
	return false;
}

/* True when no thread is inside the recorder. The caller's slot is not busy. */
static bool wait_until_quiet(void)
{
	while (somebody_is_inside()) {
		if (!pauses_left)
			return false;
		if (!--pauses_left)
			cuf_say_line("recording stays in memory for now: "
				     "another thread is still inside the recorder");
		cuf_handover_pause();
	}
	return true;
}

/* The gate is closed, and no thread is inside the recorder. False: one still is, or a fault. */
static bool may_move(void)
{
	if (!cuf_gate_fence_threads())
		cuf_handover_pause(); /* what a thread stored is visible long before that */
	if (cuf_recording_is_intact())
		return wait_until_quiet();
	cuf_fault(CUF_FAULT_HEADER);
	return false;
}

/* Where a thread is still inside, the next event that wants a file makes the next attempt. */
static void move_behind_gate(void)
{
	const char *why = "";
	int error;

	cuf_bus_guard_begin();
	if (cuf_gate_begin_switch() && may_move()) {
		error = cuf_recording_to_file(new_fd, new_path, &why);
		finish(error, why);
	} else {
		cuf_recording_discard_file(new_fd, new_path);
	}
	cuf_gate_open();
}

static void open_and_move(void *unused)
{
	const char *why = "";
	int error = open_file(&why);

	(void)unused;
	if (error)
		finish(error, why);
	else
		move_behind_gate();
}

/* Called at the events that deserve a file. Returns at once when there is one, or when an attempt
 * failed. Without a stack for it, the next event makes another attempt. */
void cuf_handover_to_file(void)
{
	uint8_t guard = cuf_tls.guard;
	int saved_errno = errno;

	if (!cuf_handover_is_pending() || !cuf_gate_is_home() || !cuf_gate_is_on() ||
	    __atomic_exchange_n(&moving, true, __ATOMIC_ACQ_REL))
		return;
	/* a signal handler that allocates on this thread now would wait for us, in vain */
	cuf_tls.guard = 1;
	if (pauses_left || !somebody_is_inside()) {
		cuf_on_side_stack(open_and_move, NULL);
		new_fd = -1;
	}
	__atomic_store_n(&moving, false, __ATOMIC_RELEASE);
	cuf_tls.guard = guard;
	errno = saved_errno;
}

void cuf_handover_wait_for_threads(void)
{
	unsigned left = CUF_HANDOVER_PAUSES_MAX;
	/* also when the recorder is off or switching: a thread may still be inside */
	if (!cuf_recording.base || !cuf_gate_is_home() || cuf_sandbox_entered())
		return;
	if (!cuf_gate_fence_threads())
		cuf_handover_pause();
	for (unsigned i = 0; had_thread(i); i++)
		for (; left && is_inside(&cuf_recording.threads[i]); left--)
			cuf_handover_pause();
}
