/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bounds between which live memory is as it was at the last reading. */
#include "interpose/record/live_change.h"

#include "interpose/abi/format.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/laws.h"

enum { FIRST_BYTES = 4 << 20, STEPS = 16 };

uint32_t cuf_live_change_due;
int64_t cuf_live_change_low = INT64_MIN, cuf_live_change_high = FIRST_BYTES;
static int64_t peak_bytes;

static void forget_bounds(void)
{
	cuf_live_change_due = 0;
	cuf_live_change_low = INT64_MIN;
	cuf_live_change_high = FIRST_BYTES;
	peak_bytes = 0;
}
CUF_AT_FORK_CHILD(forget_bounds);

void cuf_live_change_postpone(void)
{
	__atomic_store_n(&cuf_live_change_due, 0, __ATOMIC_RELAXED);
}

void cuf_live_change_settle(void)
{
	uint64_t live = cuf_host_live_bytes();
	int64_t live_bytes = live == CUF_UNKNOWN ? 0 : (int64_t)live, step = FIRST_BYTES;

	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
	if (peak_bytes / STEPS > step)
		step = peak_bytes / STEPS;
	__atomic_store_n(&cuf_live_change_low, live_bytes - step, __ATOMIC_RELAXED);
	__atomic_store_n(&cuf_live_change_high, live_bytes + step, __ATOMIC_RELAXED);
	cuf_live_change_postpone();
}
