/* SPDX-License-Identifier: Apache-2.0 */
/* Turns recording off after a fault, and leaves a recording that can be read. */
#include "interpose/process/switch_off.h"

#include <string.h>
#include "interpose/abi/format.h"
#include "interpose/platform/say.h"
#include "interpose/process/gate.h"
#include "interpose/process/identity.h"
#include "interpose/store/fault.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/store/seal.h"
#include "interpose/platform/laws.h"

static char **environment;

static const char *const reasons[CUF_FAULTS] = {
	[CUF_FAULT_HEADER] = "the recording's header was overwritten",
	[CUF_FAULT_RING] = "the recording's event rings were overwritten",
	[CUF_FAULT_LEDGER] = "the recording's table of live blocks was overwritten",
	[CUF_FAULT_STACKS] = "the recording's call stacks were overwritten",
	[CUF_FAULT_META] = "the recording's texts were overwritten",
	[CUF_FAULT_TIMELINE] = "the recording's timeline was overwritten",
	[CUF_FAULT_MAPPING] = "cannot map the file over the recording",
	[CUF_FAULT_CUT] = "the recording's file was truncated, or its disk is full or gone",
};

/*
 * The note explains the state to a reader. The recording is mapped still, so this works while other
 * threads are inside: they only write into tables that no reader looks at any more.
 */
static void write_note(const char *reason)
{
	struct cuf_header *header = cuf_recording.header;
	if (!header)
		return;
	if (!cuf_recording_is_intact() || header->meta_used > cuf_recording.meta_bytes) {
		cuf_recording_repair(); /* without it there is no room for the note */
		cuf_process_describe(environment);
	}
	cuf_meta_text(CUF_META_NOTE, CUF_NOTE_OFF, reason, strlen(reason));
	__atomic_store_n(&header->state, CUF_OFF, __ATOMIC_RELEASE);
}

/* The first fault wins; everything after it is dropped by the closed gate. */
static void switch_off(enum cuf_fault fault)
{
	CUF_TEXT(line, 256);
	if (!cuf_gate_turn_off())
		return;
	if (fault == CUF_FAULT_MAPPING) { /* the kernel may have unmapped the old one already */
		cuf_recording.base = NULL;
		cuf_recording.header = NULL;
	}
	if (fault != CUF_FAULT_CUT) /* what is left of the file is out of reach */
		write_note(reasons[fault]);
	cuf_text_add(&line, "recording stopped: ");
	cuf_text_add(&line, reasons[fault]);
	cuf_text_add(&line, "; the program goes on unrecorded");
	cuf_say(&line);
}

void cuf_switch_off_prepare(char **environment_at_start)
{
	environment = environment_at_start;
	cuf_fault_handle_with(switch_off);
}

bool cuf_check_recording(void)
{
	if (!cuf_recording.header)
		return false;
	if (cuf_recording_is_intact())
		return true;
	cuf_fault(CUF_FAULT_HEADER);
	return false;
}
