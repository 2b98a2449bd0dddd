/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether live host memory has changed so much that the allocator's statistics are worth a new
 * reading: by a sixteenth of its peak, and by 4 MiB at least.
 *
 * Contract: any thread, no lock. A forked child begins anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Set by notices; not 0: a reading is due. */
extern uint32_t cuf_live_change_due;
extern int64_t cuf_live_change_low, cuf_live_change_high;

/* After live memory has changed to this. Two comparisons when nothing is due. */
static inline void cuf_live_change_notice(int64_t live_bytes)
{
	if (__builtin_expect(
		    live_bytes < __atomic_load_n(&cuf_live_change_low, __ATOMIC_RELAXED) ||
			    live_bytes > __atomic_load_n(&cuf_live_change_high, __ATOMIC_RELAXED),
		    0))
		__atomic_store_n(&cuf_live_change_due, 1, __ATOMIC_RELAXED);
}

static inline bool cuf_live_change_is_due(void)
{
	return __atomic_load_n(&cuf_live_change_due, __ATOMIC_RELAXED) != 0;
}

/* A due reading is postponed: the next notice makes it due again. */
void cuf_live_change_postpone(void);
/* A reading was made: the next one is due when memory differs from what it is now. */
void cuf_live_change_settle(void);
