/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, stopping, forking, and the one hand-over from memory to the file. */
#include "interpose/record/state.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include "interpose/record/forget.h"
#include "interpose/store/dropped.h"
#include "interpose/store/liveness.h"
#include "interpose/store/meta.h"
#include "interpose/code/modules.h"
#include "interpose/platform/options.h"
#include "interpose/process/process_facts.h"
#include "interpose/python/python.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/process/thread.h"
#include "interpose/platform/laws.h"

static uint64_t closed_gate; /* until start: 0, nobody records */
uint64_t *cuf_gate = &closed_gate;
static uint64_t generation = CUF_GENERATION_NEW;
static enum cuf_state state = CUF_STATE_BOOT;
static uint32_t recorded_pid;
static bool in_memory, said_why;
static char **environment;

/* Of a process's life, at most a second for threads to leave the recorder: one that lost its processor inside comes back
 * well before, on a loaded machine, too. */
enum { PAUSE_NS = 50000, PAUSES_MAX = 20000 };
static unsigned pauses_left;

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static uint32_t my_pid(void) { return (uint32_t)cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0); }

static void pause_briefly(void)
{
	struct timespec t = { 0, PAUSE_NS };
	cuf_sys(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}

int cuf_state_is_on(void) { return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == CUF_STATE_ON; }
bool cuf_state_in_memory(void) { return in_memory; }
char **cuf_state_environment(void) { return environment; }
uint32_t cuf_state_pid(void) { return recorded_pid; }

void cuf_state_off(const char *reason)
{
	if (__atomic_exchange_n(&state, CUF_STATE_OFF, __ATOMIC_ACQ_REL) == CUF_STATE_OFF)
		return;
	__atomic_store_n(cuf_gate, 0, __ATOMIC_SEQ_CST);
	if (cuf_recording.header) {
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_OFF, reason, strlen(reason));
		__atomic_store_n(&cuf_recording.header->state, CUF_OFF, __ATOMIC_RELEASE);
	}
	CUF_TEXT(text, 256);
	cuf_text_add(&text, "recording is off: ");
	cuf_text_add(&text, reason);
	cuf_say(&text);
}

static void open_gate(void)
{
	__atomic_store_n(&state, CUF_STATE_ON, __ATOMIC_RELEASE);
	__atomic_store_n(cuf_gate, generation, __ATOMIC_SEQ_CST);
}

static const char *error_words(int error)
{
	switch (error) {
	case ENOSPC: return "no space left on the device; free some, set a smaller CUFLIGHT_OPTIONS=size=, or another CUFLIGHT_OUTPUT";
	case EROFS: return "read-only file system; set CUFLIGHT_OUTPUT to a writable directory";
	case EACCES: case EPERM: return "permission denied; set CUFLIGHT_OUTPUT to a writable directory";
	case ENOENT: return "no such directory; set CUFLIGHT_OUTPUT to a writable directory";
	case ENOTDIR: return "not a directory; set CUFLIGHT_OUTPUT to a writable directory";
	case EFBIG: return "file size limit (ulimit -f); raise it, or set a smaller CUFLIGHT_OPTIONS=size=";
	case EMFILE: case ENFILE: return "too many open files";
	case ENOMEM: return "out of memory";
	case ENAMETOOLONG: return "the name is too long; set a shorter CUFLIGHT_OUTPUT";
	case ECANCELED: return "the program has locked itself in since it started (a seccomp sandbox); record from the start: CUFLIGHT_OPTIONS=start=1";
	case ELOOP: return "a symbolic link is in the way; set another CUFLIGHT_OUTPUT";
	default: return NULL;
	}
}

static void say_why_no_file(const char *what, int error)
{
	const char *words = error_words(error);
	CUF_TEXT(text, 1500);
	if (said_why)
		return;
	said_why = true;
	cuf_text_add(&text, what);
	cuf_text_add(&text, " '");
	cuf_text_add(&text, *cuf_recording.path ? cuf_recording.path : cuf_options.output);
	cuf_text_add(&text, "': ");
	if (words) {
		cuf_text_add(&text, words);
	} else {
		cuf_text_add(&text, "error ");
		cuf_text_number(&text, (uint64_t)error);
	}
	cuf_text_add(&text, " (recording goes on in memory alone)");
	cuf_say(&text);
}

/* With the gate closed and nobody inside. */
static void move_to_file(void)
{
	const char *why = "";
	int error;
	cuf_process_describe(environment);
	const struct cuf_name_parts names = {
		.pid = cuf_recording.header->pid,
		.epoch_s = cuf_recording.header->start_realtime_ns / 1000000000u,
		.host = cuf_process_host(),
		.executable = cuf_process_name(),
		.environment = environment,
	};
	error = cuf_recording_to_file(&names, &why);
	in_memory = false; /* also after a failure: it was tried once, and said */
	if (error) {
		say_why_no_file(why, -error);
		cuf_recording.path[0] = 0;
	} else if (cuf_options.verbose) {
		CUF_TEXT(text, 1200);
		cuf_text_add(&text, "recording to ");
		cuf_text_add(&text, cuf_recording.path);
		cuf_say(&text);
	}
}

/* The caller's own slot is not busy. */
static bool is_inside(const struct cuf_thread *slot)
{
	return __atomic_load_n(&slot->busy, __ATOMIC_SEQ_CST) && cuf_thread_alive(slot->tid);
}

/* Slots are given out in order: one that never was given out is the last. */
static bool was_given_out(const struct cuf_thread *slot) { return __atomic_load_n(&slot->generation, __ATOMIC_RELAXED); }

/* True when no thread but the caller is inside the recorder. */
static bool wait_until_quiet(void)
{
	for (;;) {
		bool busy = false;
		for (unsigned i = 0; i < cuf_recording.thread_count && !busy && was_given_out(&cuf_recording.threads[i]); i++)
			busy = is_inside(&cuf_recording.threads[i]);
		if (!busy)
			return true;
		if (!pauses_left)
			return false;
		if (!--pauses_left)
			cuf_say_line("the recording stays in memory for now: a thread of this program does not leave the recorder");
		pause_briefly();
	}
}

void cuf_state_wait_for_threads(void)
{
	unsigned left = PAUSES_MAX;
	if (!cuf_recording.base || my_pid() != recorded_pid || cuf_sandbox_entered())
		return; /* switched off, or while the recording is moved, somebody may still be inside */
	if (!cuf_thread_fence_all())
		pause_briefly();
	for (unsigned i = 0; i < cuf_recording.thread_count && was_given_out(&cuf_recording.threads[i]); i++)
		for (; left && is_inside(&cuf_recording.threads[i]); left--)
			pause_briefly();
}

void cuf_state_want_file(void)
{
	enum cuf_state on = CUF_STATE_ON;
	uint8_t guard = cuf_tls.guard;
	int saved = errno;
	if (!__atomic_load_n(&in_memory, __ATOMIC_ACQUIRE) || my_pid() != recorded_pid ||
	    !__atomic_compare_exchange_n(&state, &on, CUF_STATE_SWITCHING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	cuf_tls.guard = 1; /* what a signal's handler allocates now would wait for us, in vain */
	__atomic_store_n(cuf_gate, 0, __ATOMIC_SEQ_CST);
	/* in a sandbox nothing will be moved, and there a system call too many is the program's end */
	if (!cuf_sandbox_entered() && !cuf_thread_fence_all())
		pause_briefly(); /* what a thread stored leaves its processor long before */
	if (in_memory && (cuf_sandbox_entered() || wait_until_quiet()))
		move_to_file();
	open_gate();
	cuf_tls.guard = guard;
	errno = saved;
}

static bool wants_file_at_start(bool forked)
{
	if (cuf_options.host == CUF_HOST_FULL)
		return true;
	return !forked && (cuf_options.start == 1 || cuf_options.start == cuf_recording.header->ppid);
}

/* A recording of this process: its own memory, nothing in it yet. False: off, and said why. */
static bool begin_recording(bool forked)
{
	int error = cuf_recording_open(cuf_options.size);
	if (error) {
		CUF_TEXT(text, 256);
		cuf_text_add(&text, "recording is off: cannot map ");
		cuf_text_size(&text, cuf_options.size);
		cuf_text_add(&text, "; set a smaller CUFLIGHT_OPTIONS=size=");
		cuf_say(&text);
		cuf_recording.header = NULL;
		__atomic_store_n(&state, CUF_STATE_OFF, __ATOMIC_RELEASE);
		return false;
	}
	recorded_pid = cuf_recording.header->pid;
	cuf_thread_fence_prepare();
	pauses_left = PAUSES_MAX;
	generation++;
	in_memory = true;
	cuf_process_read();
	cuf_modules_init(cuf_python_object_seen);
	cuf_python_start();
	if (wants_file_at_start(forked))
		move_to_file();
	return true;
}

static void begin_in_child(uint32_t pid)
{
	static uint32_t child; /* threads of a child may arrive together: one begins, the others wait in admit */
	uint32_t parent = recorded_pid, seen = __atomic_load_n(&child, __ATOMIC_RELAXED);
	if (seen == pid || !__atomic_compare_exchange_n(&child, &seen, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		pause_briefly();
		return;
	}
	cuf_forget_all();
	if (!begin_recording(true))
		return;
	CUF_TEXT(text, 32);
	cuf_text_number(&text, parent);
	cuf_meta_text(CUF_META_NOTE, CUF_NOTE_FORK, text.at, text.used);
	open_gate();
}

uint64_t cuf_state_admit(void)
{
	int saved = errno;
	uint64_t now = 0;
	for (unsigned tries = 0; tries < 2 * PAUSES_MAX; tries++) {
		enum cuf_state seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
		if (seen == CUF_STATE_OFF || seen == CUF_STATE_BOOT)
			break;
		if ((now = __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE)))
			break;
		uint32_t pid = my_pid();
		if (pid != recorded_pid)
			begin_in_child(pid);
		else
			pause_briefly();
	}
	if (!now && cuf_state_is_on())
		cuf_count_dropped(CUF_LOST_SWITCH);
	errno = saved;
	return now;
}

void cuf_state_start(char **environment_at_start)
{
	long gate;
	if (state != CUF_STATE_BOOT)
		return;
	environment = environment_at_start;
	cuf_sandbox_start();
	cuf_say_start();
	cuf_options_read(environment, getauxval(AT_SECURE) != 0);
	if (cuf_options.disabled) {
		state = CUF_STATE_OFF;
		return;
	}
	gate = cuf_sys_mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cuf_sys_failed(gate) || cuf_sys_madvise((void *)gate, 4096, MADV_WIPEONFORK)) {
		state = CUF_STATE_OFF;
		cuf_say_line("recording is off: this kernel cannot wipe memory on fork (Linux 4.14 can), so children would write into their parent's recording");
		return;
	}
	cuf_gate = (uint64_t *)gate;
	if (begin_recording(false))
		open_gate();
}
