/* SPDX-License-Identifier: Apache-2.0 */
/* Times: CLOCK_MONOTONIC through the vDSO; the coarse one (some ms old) costs a third and is for the malloc family. */
#ifndef CUF_CLOCK_H
#define CUF_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cuf_clock_ns(clockid_t clock)
{
	struct timespec t = { 0, 0 };
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t cuf_now_ns(void) { return cuf_clock_ns(CLOCK_MONOTONIC); }
static inline uint64_t cuf_now_coarse_ns(void) { return cuf_clock_ns(CLOCK_MONOTONIC_COARSE); }

#endif
