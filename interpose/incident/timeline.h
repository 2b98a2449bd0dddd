/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time, at falling resolution. Whatever thread has an event when a sample is due takes
 * it, so there is no thread and no timer. When the table is full every second sample is dropped and
 * the spacing doubles, so that weeks fit; the last sample may be nearer, and then the next takes
 * its place. Contract: the thread is entered; at most one sampler at a time, others go on.
 */
#pragma once

#include <stdint.h>

void cuf_timeline_tick(uint64_t now_ns);   /* a sample if one is due */
void cuf_timeline_sample(uint64_t now_ns); /* a sample now: at incidents and at the end */

/* The host's live bytes, as recorded: a sample if they rose by a sixteenth of the control group's
 * limit since the last one. */
void cuf_timeline_rise(int64_t live_bytes);

/* Until the control group is full, as of the last sample; UINT64_MAX: no limit is known. */
uint64_t cuf_timeline_room_bytes(void);
