/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory of a run over its whole time: for each group of memory the peak, the end, and what
 * each call site held at both. The end is before exit handlers, as in reports.
 *
 * Rings that lost events still tell the end, and a lower bound of the peak. A peak of sampled host
 * memory is an estimate with a 95 % interval.
 *
 * Contract: account_read walks over the recordings behind the facts; it always fills *out, freed by
 * account_free. Stacks have a copy of their addresses, in the arena.
 */
#ifndef ANALYSIS_GATE_ACCOUNT_H
#define ANALYSIS_GATE_ACCOUNT_H

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

void account_read(struct account *out, const struct facts *facts, struct run *run,
		  struct arena *arena);
void account_free(struct account *account);

/* ---- what the parts of account*.c share ---- */

struct account_process {
	struct account *account;
	const struct facts *facts;
	struct run_process *recorded;
	uint32_t process;
};

/* The row of a call site of this process; valid until the next call. */
struct account_site *account_site_of(const struct account_process *from, enum gate_group group,
				     uint32_t stack);
/* Adds a process's share to a value. */
void account_add(struct gate_value *sum, uint64_t value, uint64_t low, uint64_t high,
		 const char *why);

void account_device(const struct account_process *from); /* all groups but HOST and PYTHON */
void account_host(const struct account_process *from);   /* HOST and PYTHON */

#endif
