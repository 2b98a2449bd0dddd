/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each group of a process's memory was highest, found in a sweep over its events. The level
 * begins at 0 with the first event after which none was lost, so only the moments mean something.
 *
 * Contract: live_peaks_begin borrows the events; after the sweep *peaks is plain data.
 */
#pragma once

#include "analysis/replay/sweep.h"

enum live_group { LIVE_DEVICE, LIVE_PINNED, LIVE_MANAGED, LIVE_FRAMEWORK, LIVE_GROUPS };

/* The group of a block of the driver or of a framework; LIVE_GROUPS: a range of addresses, a pool,
 * or memory of another owner. */
enum live_group live_group_of(unsigned kind, unsigned flags);

struct live_peaks {
	uint64_t after_seq, end_seq; /* the events that count */
	int64_t level[LIVE_GROUPS], highest[LIVE_GROUPS];
	uint64_t highest_seq[LIVE_GROUPS]; /* 0: at the first event, or before it */
};

struct sweep_consumer live_peaks_begin(struct live_peaks *peaks, const struct events *events);

/* Where the work of an ended process ended; CUF_UNKNOWN: it runs, or left no end record. */
uint64_t seq_at_end(const struct reader *reader);
