/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process, as far as it can be seen from inside: its moment, its status, and the short verdict. */
#include <errno.h>
#include "interpose/core/clock.h"
#include "interpose/core/device.h"
#include "interpose/core/forget.h"
#include "interpose/core/framework.h"
#include "interpose/core/hook_names.h"
#include "interpose/core/incident.h"
#include "interpose/core/names.h"
#include "interpose/core/options.h"
#include "interpose/core/recorder.h"
#include "interpose/core/recording.h"
#include "interpose/core/ring.h"
#include "interpose/core/say.h"
#include "interpose/core/state.h"
#include "interpose/core/thread.h"
#include "interpose/core/timeline.h"
#include "interpose/core/laws.h"

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
		event = (struct cuf_event){ .time_ns = cuf_now_ns(), .op = CUF_OP_EXIT, .tid = t->tid, .extra = (uint32_t)status, .device = CUF_DEVICE_NONE };
		cuf_timeline_sample(event.time_ns);
		cuf_framework_end();
		h->end_seq = cuf_ring_event(t, CUF_RING_DEVICE, &event);
		h->end_ns = event.time_ns;
		h->end_status = status;
		__atomic_store_n(&h->end_kind, end_kind, __ATOMIC_RELEASE);
		if (*cuf_recording.path && end_kind != CUF_END_FAST && end_kind != CUF_END_EXEC)
			cuf_names_of_all_stacks();
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

static void add_held(struct cuf_text *text, const struct cuf_incident *i)
{
	static const struct { unsigned kind; const char *word; } rows[] = {
		{ CUF_KIND_DEVICE, " device" }, { CUF_KIND_ASYNC, " async" }, { CUF_KIND_VMM, " vmm" }, { CUF_KIND_ARRAY, " array" },
		{ CUF_KIND_GRAPH, " graph" }, { CUF_KIND_MANAGED, " managed" }, { CUF_KIND_PINNED, " pinned host" },
	};
	const char *comma = "";
	for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++)
		if (i->live_bytes[rows[n].kind]) {
			cuf_text_add(text, comma);
			cuf_text_size(text, i->live_bytes[rows[n].kind]);
			cuf_text_add(text, rows[n].word);
			comma = ", ";
		}
	if (!*comma)
		cuf_text_add(text, "nothing");
}

static void say_both(const struct cuf_text *text)
{
	CUF_TEXT(line, 1100);
	cuf_say(text);
	if (!*cuf_options.termination_log)
		return;
	cuf_text_add(&line, "cuflight: ");
	cuf_text_add(&line, text->at);
	cuf_text_add(&line, "\n");
	cuf_say_to_file(cuf_options.termination_log, &line);
}

static void say_verdict(const struct cuf_incident *i)
{
	CUF_TEXT(what, 512);
	CUF_TEXT(held, 512);
	CUF_TEXT(next, 1100);
	cuf_text_add(&what, "out of memory on GPU ");
	cuf_text_number(&what, i->device);
	cuf_text_add(&what, ": ");
	cuf_text_add(&what, i->kind == CUF_KIND_FRAMEWORK ? "PyTorch" : cuf_hook_name(i->label ? i->label : i->hook));
	if (i->is_request) {
		cuf_text_add(&what, " wanted ");
		cuf_text_size(&what, i->requested_bytes);
	} else {
		cuf_text_add(&what, " failed");
	}
	cuf_text_add(&what, "; the driver had ");
	cuf_text_size(&what, i->free_bytes);
	cuf_text_add(&what, " free of ");
	cuf_text_size(&what, i->total_bytes);
	say_both(&what);
	cuf_text_add(&held, "this process held ");
	add_held(&held, i);
	if (i->framework_reserved_bytes != CUF_UNKNOWN) {
		cuf_text_add(&held, "; PyTorch used ");
		cuf_text_size(&held, i->framework_allocated_bytes);
		cuf_text_add(&held, " of the ");
		cuf_text_size(&held, i->framework_reserved_bytes);
		cuf_text_add(&held, " that it had reserved");
	}
	if (i->page_hole_bytes != CUF_UNKNOWN && i->page_hole_bytes) {
		cuf_text_add(&held, "; largest hole inside its 2 MiB pages ");
		cuf_text_size(&held, i->page_hole_bytes);
	}
	say_both(&held);
	if (*cuf_recording.path) {
		cuf_text_add(&next, "next: cuflight report ");
		cuf_text_add(&next, cuf_recording.path);
		say_both(&next);
	}
}

void cuf_end_verdict(void)
{
	const struct cuf_header *h = cuf_recording.header;
	const struct cuf_incident *i = cuf_incident_unresolved();
	int saved = errno;
	if (h && i && h->pid == cuf_state_pid() && (h->end_kind == CUF_END_ABORT || ((h->end_kind == CUF_END_EXIT || h->end_kind == CUF_END_FAST) && h->end_status)) &&
	    !__atomic_exchange_n(&spoken, 1, __ATOMIC_ACQ_REL))
		say_verdict(i);
	errno = saved;
}
