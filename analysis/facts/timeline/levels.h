/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the call sites of one process held at each moment: a row for each, with its changes.
 *
 * A row is changed by levels_add. A moment that is passed is noted by levels_pass, which looks at
 * the rows that changed since the last one. Walks go backward (device) or forward (host).
 *
 * Contract: heap memory, freed by levels_fini. Entries hold from their moment on; they are in no
 * order. Pointers to rows are valid until the next levels_row.
 */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/facts/timeline/timeline.h"

struct level_row {
	uint32_t stack;
	uint8_t kind, device; /* the ordinal of the process */
	bool is_dirty;
	bool is_drawn; /* has blocks that a sample stands for */
	int64_t bytes, count;           /* where the walk is */
	int64_t kept_bytes, kept_count; /* at the moment that was passed last */
	int64_t peak_bytes, report_bytes, report_count;
	uint64_t alloc_count, alloc_bytes, free_count, short_count, short_bytes;
	uint64_t least_bytes, most_bytes;
	uint64_t last_ns; /* CLOCK_MONOTONIC: when its stack was in use; 0 unknown */
};

struct level_entry {
	uint32_t row, moment;
	int64_t bytes, count;
};

struct levels {
	struct level_row *rows;
	size_t count, room;
	struct hash_index index;
	uint32_t *dirty;
	size_t dirty_count, dirty_room;
	struct level_entry *entries;
	size_t entry_count, entry_room;
};

void levels_init(struct levels *levels);
void levels_fini(struct levels *levels);
/* The index of the row; a new one is empty. */
uint32_t levels_row(struct levels *levels, unsigned kind, unsigned device, uint32_t stack);
void levels_add(struct levels *levels, uint32_t row, int64_t bytes, int64_t count);

/* Forward: the rows that changed get an entry at this moment. */
void levels_pass_forward(struct levels *levels, uint32_t moment);
/* Backward: this moment lies before `later`. Rows that differ get an entry at `later`; FACT_NONE:
 * no moment was passed yet. */
void levels_pass_back(struct levels *levels, uint32_t later);
/* Backward, at the end: what rows have was there at the first moment, too. */
void levels_close(struct levels *levels);

/* At the moment `report` (FACT_NONE: none) rows have what was noted for it, and where is_over
 * holds, nothing. Entries are sorted by row, then moment, before and after. */
void levels_settle(struct levels *levels, const bool *is_over, uint32_t report, uint32_t moments);
