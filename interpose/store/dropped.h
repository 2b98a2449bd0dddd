/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what a full table could not hold, so that every report can state it. Contract: any
 * thread, any time; without a recording nothing is counted.
 */
#pragma once

#include "interpose/store/recording.h"

static inline void cuf_count_dropped(enum cuf_loss table)
{
	if (cuf_recording.header)
		__atomic_fetch_add(&cuf_recording.header->lost[table], 1, __ATOMIC_RELAXED);
}
