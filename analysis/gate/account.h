/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory of a run over its whole time: for each group of memory the peak, the end, and what
 * each call site held at both. The end is before exit handlers, as in reports.
 *
 * Rings that lost events still tell the end, and a lower bound of the peak. A peak of sampled host
 * memory is an estimate with a 95 % interval.
 *
 * Contract: the facts were built with all_peaks; the recordings behind them are read. account_begin
 * takes the ends of the driver's memory and account_end the rest, so that what goes back from the
 * end to a peak may do it in between: each event is undone once. *out is freed by account_free.
 * Stacks have a copy of their addresses, in the arena.
 */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/gate/measures.h"
#include "analysis/replay/run.h"

struct facts;
struct arena;

/* What a call site held at the peak of its group and at the end. */
struct account_site {
	struct fact_stack stack;
	enum gate_group group;
	uint64_t peak_bytes, peak_count;
	uint64_t end_bytes, end_count;
};

struct account {
	struct arena *arena;   /* borrowed */
	struct gate_value peak[GROUP_MAX], end[GROUP_MAX];
	struct account_site *sites;
	size_t site_count, site_room;
	struct hash_index index; /* private: process, group and stack to a place in sites */
};

void account_begin(struct account *out, const struct facts *facts, struct run *run,
		   struct arena *arena);
void account_end(struct account *account, const struct facts *facts, struct run *run);
void account_free(struct account *account);
