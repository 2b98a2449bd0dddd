/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording's section RECENT: extremes of one second, of ten, or of a minute, of a device or of
 * the host. Included by format.h.
 *
 * The key names subject, width and time, so that a bucket may be in any place. A bucket that is
 * missing had no event: the level was the last one of the bucket before it. The coarser buckets
 * have a second as soon as another one began.
 */
#pragma once

#include <stdint.h>

#define CUF_RECENT_SUBJECTS 9u /* devices 0 to 7, and the host */
#define CUF_RECENT_HOST 8u
#define CUF_RECENT_RINGS 32u   /* places for rings of buckets, three a subject: a power of two */

/* On disk: never reuse a number. */
enum cuf_recent_width {
	CUF_RECENT_SECOND = 0,
	CUF_RECENT_TEN = 1,
	CUF_RECENT_MINUTE = 2,
	CUF_RECENT_WIDTHS
};

struct cuf_recent {
	uint64_t key;            /* [commit] cuf_recent_key(); 0 empty, CUF_KEY_BUSY torn */
	uint64_t live_min_bytes, live_max_bytes, live_last_bytes; /* as in struct cuf_sample */
	/* of a device, as the driver reported it; CUF_UNKNOWN: not, and of the host */
	uint64_t free_min_bytes, free_last_bytes;
	/* of a framework: allocated, reserved; of the host: resident, and of the control group; */
	/* CUF_UNKNOWN */
	uint64_t inner_max_bytes, outer_max_bytes;
};

static inline uint64_t cuf_recent_seconds(unsigned width)
{
	static const uint8_t seconds[CUF_RECENT_WIDTHS] = { 1, 10, 60 };

	return seconds[width];
}

/* index: seconds of CLOCK_MONOTONIC by those of the width */
static inline uint64_t cuf_recent_key(unsigned subject, unsigned width, uint64_t index)
{
	return 1ull << 63 | (uint64_t)(subject * CUF_RECENT_WIDTHS + width) << 48 | index;
}

static inline uint64_t cuf_recent_index(uint64_t key) { return key & ((1ull << 48) - 1); }

_Static_assert(sizeof(struct cuf_recent) == 64, "one cache line");
