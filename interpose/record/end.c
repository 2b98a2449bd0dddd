/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process, as far as it can be seen from inside: its moment, its status, and whether a verdict is due. */
#include <errno.h>
#include "interpose/platform/clock.h"
#include "interpose/incident/device.h"
#include "interpose/record/forget.h"
#include "interpose/record/framework.h"
#include "interpose/incident/incident.h"
#include "interpose/code/symbolize.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/record/state.h"
#include "interpose/process/thread.h"
#include "interpose/incident/timeline.h"
#include "interpose/incident/verdict.h"
#include "interpose/platform/laws.h"

static uint32_t begun, spoken;

void cuf_end_fork(void) { begun = spoken = 0; }

void cuf_end_begin(unsigned end_kind, uint64_t status)
{
	struct cuf_header *h = cuf_recording.header;
	int saved = errno;
	struct cuf_thread_state *t;
	struct cuf_event event;
	if (!h || __atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
		return;
	t = cuf_thread_enter();
	if (t) { /* also ensures that a forked child does not mark its parent's end */
		event = (struct cuf_event){ .time_ns = cuf_now_ns(), .op = CUF_OP_EXIT, .tid = t->writer.tid, .extra = (uint32_t)status, .device = CUF_DEVICE_NONE };
		cuf_timeline_sample(event.time_ns);
		cuf_framework_end();
		h->end_seq = cuf_ring_event(&t->writer, CUF_RING_DEVICE, &event);
		h->end_ns = event.time_ns;
		h->end_status = status;
		__atomic_store_n(&h->end_kind, end_kind, __ATOMIC_RELEASE);
		if (*cuf_recording.path && end_kind != CUF_END_FAST && end_kind != CUF_END_EXEC)
			cuf_symbolize_all_stacks();
		cuf_thread_leave(t);
	} else {
		__atomic_store_n(&begun, 0, __ATOMIC_RELEASE);
	}
	errno = saved;
}

void cuf_end_undo(void)
{
	if (!cuf_recording.header)
		return;
	__atomic_store_n(&cuf_recording.header->end_kind, CUF_END_NONE, __ATOMIC_RELEASE);
	__atomic_store_n(&begun, 0, __ATOMIC_RELEASE);
}

void cuf_end_verdict(void)
{
	const struct cuf_header *h = cuf_recording.header;
	const struct cuf_incident *i = cuf_incident_unresolved();
	int saved = errno;
	if (h && i && h->pid == cuf_state_pid() && (h->end_kind == CUF_END_ABORT || ((h->end_kind == CUF_END_EXIT || h->end_kind == CUF_END_FAST) && h->end_status)) &&
	    !__atomic_exchange_n(&spoken, 1, __ATOMIC_ACQ_REL))
		cuf_verdict_say(i);
	errno = saved;
}
