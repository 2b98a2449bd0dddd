/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the events of a device up to a moment: what was allocated and freed, and the
 * history of each call site. It measures only; evidence_trace.c turns it into signals.
 *
 * Contract: the evidence of the snapshot (evidence_device, evidence_live) is filled before. Heap
 * memory, freed by event_pass_fini. Only blocks of a framework are followed where there are any,
 * since they are inside blocks of the driver.
 */
#ifndef ANALYSIS_EXPLAIN_EVIDENCE_EVENT_PASS_H
#define ANALYSIS_EXPLAIN_EVIDENCE_EVENT_PASS_H

#include "analysis/explain/evidence/evidence.h"
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/site_trace.h"

enum { FREED_SIZES_MAX = 4096, UNIT_SIZES_MAX = 64 };

/* Sizes of blocks that were freed, thinned evenly when there are many. */
struct freed_sizes {
	uint64_t sizes[FREED_SIZES_MAX];
	size_t count;
	uint64_t seen, stride, most;
};

struct event_pass {
	const struct evidence *evidence;
	unsigned ordinal; /* of the device in the process */
	bool framework; /* blocks of a framework are followed */
	uint64_t small_bytes; /* smaller blocks are churn in any program */
	struct site_traces sites;
	struct stack_sites keys;
	uint32_t failing; /* call site of the failed request; 0 none */
	uint32_t grown_cache; /* of a cache that grows within a request; 0 none, trace.c sets it */
	uint64_t last_ns; /* of the last event */
	/* all blocks as large as the failed request, as if one call site had allocated them */
	struct site_traces same_size;
	uint64_t allocated, freed; /* bytes of blocks that are not small */
	uint64_t freed_all; /* bytes of all freed blocks */
	struct freed_sizes freed_sizes;
	uint64_t last_seq; /* of the last allocation */
	uint64_t family_first; /* seq of the first live block of the family; 0 no family */
	uint64_t family_query_seq; /* the program's query right before that block; 0 none */
	uint64_t burst_all, burst_family; /* bytes allocated since it; of those, of its size */
	uint64_t unit_allocs, unit_frees; /* blocks of the family's size */
	uint64_t query_seq, since_query; /* last query of free memory; bytes allocated since */
	uint64_t capture_seq; /* last begin or end of a graph capture; 0 none */
	/* sizes that the failing call site got in the failing thread, a ring of the latest ones */
	uint64_t unit_sizes[UNIT_SIZES_MAX];
	size_t unit_size_count;
};

void event_pass_run(struct event_pass *pass, struct build *build, const struct evidence *evidence);
void event_pass_fini(struct event_pass *pass);

#endif
