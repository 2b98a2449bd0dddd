/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the constructor to the forked child: the recorder starts, a recording begins, threads are
 * admitted, objects are unloaded. Also what hooks may know about the recorder.
 */
#include <errno.h>
#include <sys/auxv.h>
#include "interpose/code/modules.h"
#include "interpose/code/symbolize.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/options.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/process/gate.h"
#include "interpose/process/handover.h"
#include "interpose/process/identity.h"
#include "interpose/process/size_limit.h"
#include "interpose/process/switch_off.h"
#include "interpose/process/thread.h"
#include "interpose/python/python.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/store/seal.h"
#include "interpose/platform/laws.h"

static char **environment;
static void (*seen_object)(uintptr_t bias, const ElfW(Dyn) *dynamic);

static void see_object(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	cuf_python_object_seen(bias, dynamic);
	if (seen_object)
		seen_object(bias, dynamic);
}

void cuf_on_object_seen(void (*seen)(uintptr_t bias, const ElfW(Dyn) *dynamic))
{
	seen_object = seen;
}

/* ---- a recording begins ---- */

static void report_no_memory(void)
{
	CUF_TEXT(text, 256);
	cuf_text_add(&text, "recording is off: cannot map ");
	cuf_text_size(&text, cuf_options.size);
	cuf_text_add(&text, "; set a smaller CUFLIGHT_OPTIONS=size=");
	cuf_say(&text);
}

static bool needs_file_at_start(bool is_forked)
{
	if (cuf_options.host == CUF_HOST_FULL)
		return true;
	if (is_forked)
		return false;
	return cuf_options.start == 1 || cuf_options.start == cuf_recording.header->ppid;
}

struct beginning {
	bool is_forked, done;
};

static void begin_on_stack(void *argument)
{
	struct beginning *beginning = argument;
	if (cuf_recording_open(cuf_size_limit_apply())) {
		if (beginning->is_forked)
			report_no_memory();
		cuf_recording.header = NULL;
		cuf_gate_turn_off();
		return;
	}
	cuf_gate_begin_recording(cuf_recording.header->pid);
	cuf_handover_begin_recording(environment);
	cuf_process_read();
	cuf_recording_seal();
	cuf_modules_init(see_object);
	cuf_python_start();
	if (needs_file_at_start(beginning->is_forked))
		cuf_handover_at_start();
	beginning->done = true;
}

/*
 * A recording of this process: its own memory, nothing in it yet. False: off; in a forked child
 * that is reported, if there is a stack for words, at the start the caller does it. This reads and
 * describes much, and the first event of a forked child may be on a small stack.
 */
static bool begin_recording(bool is_forked)
{
	struct beginning beginning = { .is_forked = is_forked };
	if (!cuf_on_side_stack(begin_on_stack, &beginning))
		cuf_gate_turn_off();
	return beginning.done;
}

/* Threads of a child may arrive together: one begins, the others wait in admit. */
static void begin_in_child(void)
{
	uint32_t parent = cuf_gate_pid();
	CUF_TEXT(text, 32);

	if (!cuf_gate_claim())
		return;
	cuf_at_fork_child_run();
	if (!begin_recording(true))
		return;
	cuf_text_number(&text, parent);
	cuf_meta_text(CUF_META_NOTE, CUF_NOTE_FORK, text.at, text.used);
	cuf_gate_open();
}

/*
 * The generation to record under, after a hand-over or the begin of a forked child's recording; 0:
 * do not record.
 */
static uint64_t admit(void)
{
	int saved_errno = errno;
	uint64_t generation = 0;
	for (unsigned pauses = 0; pauses < 2 * CUF_HANDOVER_PAUSES_MAX && !generation; pauses++) {
		enum cuf_gate_state state = cuf_gate_state();

		if (state == CUF_GATE_OFF || state == CUF_GATE_BOOT)
			break;
		generation = __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE);
		if (generation)
			break;
		if (cuf_gate_was_wiped())
			begin_in_child();
		else
			cuf_handover_pause();
	}
	if (!generation && cuf_gate_is_on())
		cuf_count_dropped(CUF_LOST_SWITCH);
	errno = saved_errno;
	return generation;
}

/* ---- the start ---- */

static void start(void)
{
	if (cuf_gate_state() != CUF_GATE_BOOT)
		return;
	cuf_sandbox_start();
	cuf_say_start();
	cuf_options_read(environment, getauxval(AT_SECURE) != 0);
	if (cuf_options.disabled) {
		cuf_gate_turn_off();
		return;
	}
	if (!cuf_gate_install()) {
		cuf_gate_turn_off();
		cuf_say_line("recording is off: this kernel cannot wipe memory on fork "
			     "(Linux 4.14 can), so children would write into their parent's "
			     "recording");
		return;
	}
	cuf_thread_admit_with(admit);
	cuf_switch_off_prepare(environment);
	if (begin_recording(false))
		cuf_gate_open();
	else
		report_no_memory();
}

void cuf_recorder_start(char **environment_at_start)
{
	environment = environment_at_start;
	start();
	cuf_host_begin_skipping();
}

/* ---- what hooks may know ---- */

struct cuf_recorder_status cuf_recorder_status(void)
{
	struct cuf_recorder_status status = { .is_on = cuf_gate_is_on() };
	if (!cuf_recording.base)
		return status;
	status.is_on_disk = *cuf_recording.path != 0;
	status.start = (uintptr_t)cuf_recording.base;
	status.bytes = cuf_recording.bytes;
	status.room_bytes = cuf_timeline_room_bytes();
	status.framework_events = cuf_recording.header->framework_events;
	return status;
}

/* Entering is what makes a forked child begin its own recording. */
bool cuf_process_is_recorded(bool begin)
{
	int saved_errno = errno;
	if (begin && !cuf_thread_is_attached()) {
		struct cuf_thread_state *thread = cuf_thread_enter();
		if (thread)
			cuf_thread_leave(thread);
	}
	errno = saved_errno;
	return cuf_gate_is_home();
}

/* ---- unloading ---- */

static void name_before_unload(void *handle)
{
	int saved_errno = errno;
	struct cuf_thread_state *thread = cuf_thread_enter();
	if (thread) {
		cuf_symbolize_before_close(handle);
		cuf_thread_leave(thread);
	}
	errno = saved_errno;
}

int cuf_unload(int (*unload)(void *), void *handle)
{
	int result;
	name_before_unload(handle);
	if (cuf_python_unload_begin())
		cuf_handover_wait_for_threads();
	result = unload(handle);
	cuf_python_unload_end();
	if (result == 0 && cuf_process_is_recorded(true))
		cuf_modules_changed();
	return result;
}
