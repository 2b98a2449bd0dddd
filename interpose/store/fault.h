/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the recorder itself. The recording is memory of the program's process, which a stray
 * pointer of the program, or an error of ours, may overwrite. Tables that cannot be right must
 * not be followed: whoever meets an impossible index, offset or kind drops the event and reports
 * it here, and recording stops for the rest of the process.
 *
 * Contract: checks are made where they cost hot paths nothing: when a thread is born, a ring
 * segment is exchanged, a stack is written, an incident is opened, at the hand-over and at the
 * end. cuf_fault may be called from any thread inside the recorder, more than once; only the
 * first one counts. The handler is process/switch_off.c, a room above,
 * which registers itself.
 */
#pragma once

enum cuf_fault {
	/* magic or layout of the recording */
	CUF_FAULT_HEADER,
	/* a segment index or a cursor outside the ring */
	CUF_FAULT_RING,
	/* a live block of an impossible kind */
	CUF_FAULT_LEDGER,
	/* more stack frames than the table has, or a stack beyond it */
	CUF_FAULT_STACKS,
	/* the end of META is outside META */
	CUF_FAULT_META,
	/* more samples than the table has */
	CUF_FAULT_TIMELINE,
	/* the file could not be mapped over the recording */
	CUF_FAULT_MAPPING,
	/* the file was cut, or its file system is gone: SIGBUS */
	CUF_FAULT_CUT,
	CUF_FAULTS
};

void cuf_fault(enum cuf_fault fault) __attribute__((cold, noinline));

typedef void cuf_fault_handler(enum cuf_fault fault);

/* NULL: a fault only drops its event. */
void cuf_fault_handle_with(cuf_fault_handler *handler);
