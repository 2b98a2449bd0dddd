/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what could not be held, so that every report can say it. */
#ifndef CUF_DROPPED_H
#define CUF_DROPPED_H

#include "interpose/store/recording.h"

static inline void cuf_count_dropped(enum cuf_loss table)
{
	if (cuf_recording.header)
		__atomic_fetch_add(&cuf_recording.header->lost[table], 1, __ATOMIC_RELAXED);
}

#endif
