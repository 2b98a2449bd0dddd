/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process, as far as it can be seen from inside: its moment, its status, and whether a
 * verdict is due.
 */
#include <errno.h>
#include "interpose/code/symbolize.h"
#include "interpose/incident/incident.h"
#include "interpose/incident/timeline.h"
#include "interpose/incident/verdict.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/process/gate.h"
#include "interpose/process/handover.h"
#include "interpose/process/switch_off.h"
#include "interpose/process/thread.h"
#include "interpose/record/framework.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/platform/laws.h"

enum { NAMING_NS = 200000, NAMING_SHARE = 1000, NS_OF_SYMBOL = 12 };

static uint32_t is_marked, is_verdict_printed;

static void forget_end(void) { is_marked = is_verdict_printed = 0; }
CUF_AT_FORK_CHILD(forget_end);

/*
 * Naming functions reads symbol tables: not on the way out by _exit, and an exec must not be
 * delayed. A reader that has the files names them, too. So it may take a thousandth of the time
 * that the process has run, and no memory where the control group is nearly full.
 */
static void name_stacks(const struct cuf_header *header, unsigned end_kind)
{
	uint64_t most_ns = NAMING_NS + (header->end_ns - header->start_ns) / NAMING_SHARE;

	if (*cuf_recording.path && end_kind != CUF_END_FAST && end_kind != CUF_END_EXEC &&
	    cuf_timeline_room_bytes() >= CUF_END_ROOM_BYTES)
		cuf_symbolize_all_stacks(most_ns / NS_OF_SYMBOL);
}

/*
 * The sample and the framework's sums come first, so that they are older than the end.
 */
static void mark_end(struct cuf_thread_state *thread, unsigned end_kind, uint64_t status)
{
	struct cuf_header *header = cuf_recording.header;
	struct cuf_event event = {
		.time_ns = cuf_now_ns(),
		.op = CUF_OP_EXIT,
		.tid = thread->writer.tid,
		.extra = (uint32_t)status,
		.device = CUF_DEVICE_NONE,
	};
	cuf_timeline_sample(event.time_ns);
	cuf_threads_mark_ended();
	cuf_framework_end();
	header->end_seq = cuf_ring_event(&thread->writer, CUF_RING_DEVICE, &event);
	header->end_ns = event.time_ns;
	cuf_host_mark_time(thread); /* what exit handlers free comes later */
	header->end_status = status;
	__atomic_store_n(&header->end_kind, end_kind, __ATOMIC_RELEASE);
	name_stacks(header, end_kind);
}

/*
 * Still in memory: it is read only if an exit handler makes it a file. Then its end is here,
 * without an event. Other programs need not wait for us to enter and to measure.
 */
static bool mark_end_in_memory(unsigned end_kind, uint64_t status)
{
	struct cuf_header *header = cuf_recording.header;

	if (!cuf_handover_is_ahead())
		return false;
	header->end_seq = __atomic_load_n(&header->next_seq, __ATOMIC_RELAXED);
	header->end_ns = cuf_now_ns();
	header->end_status = status;
	__atomic_store_n(&header->end_kind, end_kind, __ATOMIC_RELEASE);
	return cuf_handover_is_ahead();
}

/* A handler of SIGABRT may leave abort, or call exit. Then the later end is the true one. */
static bool was_abort_survived(unsigned end_kind)
{
	return end_kind != CUF_END_ABORT && cuf_recording.base &&
	       __atomic_load_n(&cuf_recording.header->end_kind, __ATOMIC_ACQUIRE) == CUF_END_ABORT;
}

/* Entering also keeps a forked child from marking its parent's end. */
static void begin_end(unsigned end_kind, uint64_t status)
{
	struct cuf_thread_state *thread;
	if (__atomic_exchange_n(&is_marked, 1, __ATOMIC_ACQ_REL) && !was_abort_survived(end_kind))
		return;
	cuf_check_recording();
	if (mark_end_in_memory(end_kind, status))
		return;
	thread = cuf_thread_enter();
	if (!thread) {
		__atomic_store_n(&is_marked, 0, __ATOMIC_RELEASE);
		return;
	}
	mark_end(thread, end_kind, status);
	cuf_thread_leave(thread);
}

/* An exec failed: the process goes on. The mark of an exit is not the exec's to remove. */
static void undo_end(void)
{
	uint32_t exec = CUF_END_EXEC;

	if (__atomic_compare_exchange_n(&cuf_recording.header->end_kind, &exec, CUF_END_NONE, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_store_n(&is_marked, 0, __ATOMIC_RELEASE);
}

static bool is_bad_end(const struct cuf_header *header)
{
	if (header->end_kind == CUF_END_ABORT)
		return true;
	return (header->end_kind == CUF_END_EXIT || header->end_kind == CUF_END_FAST) &&
		header->end_status;
}

/* Only a failure that nothing resolved, and only when the process ends badly. */
static void print_verdict(void)
{
	const struct cuf_header *header = cuf_recording.header;
	const struct cuf_incident *incident = cuf_incident_unresolved();
	if (!incident || header->pid != cuf_gate_pid() || !is_bad_end(header))
		return;
	if (!__atomic_exchange_n(&is_verdict_printed, 1, __ATOMIC_ACQ_REL))
		cuf_verdict_print(incident);
}

void cuf_process_end(unsigned end_kind, uint64_t status)
{
	int saved_errno = errno;
	if (!cuf_recording.header)
		return;
	if (end_kind == CUF_END_NONE) {
		undo_end();
	} else {
		begin_end(end_kind, status);
		print_verdict();
	}
	errno = saved_errno;
}
