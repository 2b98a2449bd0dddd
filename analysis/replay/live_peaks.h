/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each group of a process's memory was highest, found in a sweep over its events. The level
 * begins at 0 with the first event after which none was lost, so only the moments mean something.
 *
 * Contract: live_peaks_begin borrows the events until the end of the sweep; live_peaks_end frees
 * what it found.
 */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/replay/sweep.h"

enum live_group { LIVE_DEVICE, LIVE_PINNED, LIVE_MANAGED, LIVE_FRAMEWORK, LIVE_GROUPS };

/* The group of a block of the driver or of a framework; LIVE_GROUPS: a range of addresses, a pool,
 * or memory of another owner. */
enum live_group live_group_of(unsigned kind, unsigned flags);

/* What changed by call site since a level was highest, modulo 2^64. What each held then is what it
 * holds at the end, less this. At a new peak its user sets the count to 0. */
struct level_change { uint32_t site; uint64_t bytes, count; };
struct level_changes {
	struct level_change *items; size_t count, room; /* by their first event */
	struct hash_index places; /* of a call site in items, plus 1, if it is there */
};

void level_changes_init(struct level_changes *changes);
void level_changes_fini(struct level_changes *changes);
void level_changes_add(struct level_changes *changes, uint32_t site, uint64_t bytes,
		       uint64_t count);

struct live_peaks {
	const struct reader *reader;
	uint64_t after_seq, end_seq; /* the events that count */
	int64_t level[LIVE_GROUPS], highest[LIVE_GROUPS];
	uint64_t highest_seq[LIVE_GROUPS]; /* 0: at the first event, or before it */
	struct level_changes since[LIVE_GROUPS];
};

struct sweep_consumer live_peaks_begin(struct live_peaks *peaks, const struct events *events);
void live_peaks_end(struct live_peaks *peaks); /* all zero is fine */

/* Where the work of an ended process ended; CUF_UNKNOWN: it runs, or left no end record. */
uint64_t seq_at_end(const struct reader *reader);
