/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Section RECENT: the least, the most and the last of memory in each second, in ten seconds and in
 * a minute, so that no reader misses a peak however rarely it looks. Contract: any thread that is
 * entered, no lock. A level of a subject that has no ring, or a negative one, is left out.
 */
#pragma once

#include <stdint.h>
#include "interpose/incident/totals.h"
#include "interpose/store/recording.h"

/* A device's or the host's live bytes, after an event. */
void cuf_recent_live(unsigned subject, uint64_t live_bytes, uint64_t now_ns);
/* A device's free memory, as the driver reported it. */
void cuf_recent_free(unsigned device, uint64_t free_bytes, uint64_t now_ns);
/* What the framework reported of its allocator; of the host: resident, and the control group's. */
void cuf_recent_inner(unsigned subject, struct cuf_framework_level level, uint64_t now_ns);
