/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section RECENT of one recording: how high and how low memory was lately, however short that
 * was. interpose/abi/recent.h has the layout.
 *
 * Contract: buckets are copied, checked and in order of time. Of a recording that is being written
 * a bucket that changes its time while it is copied is left out. Times are CLOCK_MONOTONIC ns.
 * Unknown is CUF_UNKNOWN.
 */
#pragma once

#include "analysis/recording/reader.h"

struct recent_ring {
	struct cuf_recent *buckets; /* by time, each time once */
	size_t count;
};

/* Rings by subject and width. Heap memory. */
struct recent { struct recent_ring rings[CUF_RECENT_SUBJECTS][CUF_RECENT_WIDTHS]; };

/* Buckets that began up to until_ns, as many as a day has minutes. None of an older recording. */
void recent_read(const struct reader *reader, uint64_t until_ns, struct recent *out);
void recent_fini(struct recent *recent);

/* Extremes of a stretch of time; the names are those of struct cuf_recent. */
struct recent_extremes {
	bool known;            /* the level is known somewhere in the stretch */
	uint64_t live_min_bytes, live_max_bytes, live_last_bytes;
	uint64_t free_min_bytes, inner_max_bytes, outer_max_bytes;
};

/* The stretch begins in the second of from_ns, or within ten seconds or a minute before it where
 * seconds do not reach as far back. */
struct recent_extremes recent_extremes(const struct recent *recent, unsigned subject,
				       uint64_t from_ns, uint64_t until_ns);

/*
 * The largest rise above the level before and after it: what one piece of work needed and gave
 * back. Levels up to 60 buckets away count, of each width. 0: none was seen.
 */
uint64_t recent_burst(const struct recent *recent, unsigned subject);
