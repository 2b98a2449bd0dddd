/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one phase or request needed: for each group of memory, how far the live bytes rose above
 * those at its begin, how many stayed, and where asked for the call sites behind both.
 * Test runners mark each test as a phase, so this is the memory of a test.
 *
 * Contract: phase_uses_read always fills *out, freed by phase_uses_free; the run is borrowed, and
 * stacks point into it. Threads are not told apart: what another thread allocated meanwhile
 * counts. Unknown is CUF_UNKNOWN, with the reason in why.
 */
#pragma once

#include "analysis/gate/measures.h"
#include "analysis/replay/run.h"

enum { PHASE_SITES_MAX = 10 };

struct phase_amount {
	uint64_t need_bytes;  /* peak over the level at the begin */
	int64_t stay_bytes;   /* at the end, over that level; negative: older blocks were freed */
	enum fact_basis basis; /* NONE: unknown */
	const char *why;      /* unknown: a clause; else "" */
};

/* What blocks of one call site contributed, between the begin and the peak or the end. */
struct phase_site {
	enum gate_group group;
	bool at_end;          /* it stayed; else it was there at the peak */
	struct fact_stack stack;
	int64_t bytes, blocks;
};

struct phase_use {
	const char *name;
	uint32_t process, pid, depth;
	uint64_t id;          /* that cuflight_phase_start or cuflight_request_begin returned; 0 */
	bool is_request;
	uint64_t begin_ns, end_ns; /* CLOCK_REALTIME; end CUF_UNKNOWN: open */
	struct phase_amount amounts[GROUP_MAX];
	const struct phase_site *sites; /* where asked for, largest first */
	size_t site_count; /* at most PHASE_SITES_MAX a group and moment */
};

struct phase_uses {
	struct arena *arena;
	struct phase_use *items; /* by process and begin */
	size_t count;
};

/* id: only the phases with this id; 0: all. sites: with their call sites, for which all changes are
 * read again for each phase. */
void phase_uses_read(struct phase_uses *out, const struct run *run, uint64_t id, bool sites);
void phase_uses_free(struct phase_uses *uses);
