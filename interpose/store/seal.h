/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the header that is constant once a recording began (magic, layout, times, process),
 * kept a second time in private memory. So an overwritten header is noticed, and can be repaired.
 * Contract: cuf_recording_seal when the header is complete, by one thread; the others from any
 * thread. There is a recording.
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/format.h"

void cuf_recording_seal(void);

/* The copy, in place of a header that cannot be read any more. */
void cuf_recording_write_sealed(struct cuf_header *header);

/* Compares some 700 bytes. */
bool cuf_recording_is_intact(void);

/* Puts the header back, with META as its only section, and empty: nothing else can be trusted. */
void cuf_recording_repair(void);
