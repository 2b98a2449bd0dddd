/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in nanoseconds, through the vDSO. Contract: no lock, errno untouched, any thread.
 * The coarse clock lags by a few milliseconds and costs a third: the malloc family uses it.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t cuf_clock_ns(clockid_t clock)
{
	struct timespec now = { 0, 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t cuf_now_ns(void) { return cuf_clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t cuf_now_coarse_ns(void) { return cuf_clock_ns(CLOCK_MONOTONIC_COARSE); }
