/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the front door (recorder.h) that readings of statistics need: when they are due
 * (live_change.h), where they may be made, and what they leave. Contract as there.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/record/live_change.h"

/*
 * The object with this code address, in which the thread is, takes memory that no stack accounts
 * for. A reader looks into its file.
 */
void cuf_note_object(uintptr_t code_addr);
/*
 * A text that is written again and again, in a record with room for so many bytes. *record is NULL
 * before the first time. Two of them in turn keep one whole whenever the process is killed.
 */
void cuf_note_again(struct cuf_meta **record, unsigned type, uint64_t number, const char *text,
		    size_t bytes, size_t room);

/*
 * Calls seen(bias, dynamic section) for each object that a stack passes for the first time. The
 * thread is inside the object then.
 */
void cuf_on_object_seen(void (*seen)(uintptr_t bias, const ElfW(Dyn) *dynamic));

struct cuf_code_range {
	uintptr_t start, end;
};
/*
 * True when this thread's stack is known to its outermost frame, no signal handler is on it, and
 * none of these ranges of code.
 */
bool cuf_stack_avoids(void *frame, const struct cuf_code_range *ranges, unsigned count);
