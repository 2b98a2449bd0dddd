/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks added up by call site, kind, device, thread and phase, for formats that show sums.
 *
 * Contract: heap memory, freed by site_sums_fini. One entry for each combination that occurs; the
 * names are borrowed from the rows.
 */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/facts/history/rows.h"

struct site_sum {
	uint32_t process, device, kind, tid, site;
	const char *phase;
	uint64_t live_bytes, live_count;   /* at the moment */
	uint64_t alloc_bytes, alloc_count; /* of all blocks that the recording knows */
};

struct site_sums {
	struct site_sum *items;
	size_t count, room;
	struct hash_index index;
	bool by_thread_and_phase; /* else tid is 0 and phase NULL */
	bool history;             /* what is added now: allocations, not live blocks */
};

/* by_thread_and_phase: also a sum for each thread and phase. with_history: alloc_* too, which costs
 * a pass over all events. */
void site_sums_read(struct site_sums *sums, struct rows *rows, bool by_thread_and_phase,
		    bool with_history);
void site_sums_fini(struct site_sums *sums);
