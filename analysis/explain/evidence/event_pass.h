/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the events of a device up to a moment: what was allocated and freed, and the
 * history of each call site. It measures only; evidence_trace.c turns it into signals.
 *
 * The incidents that a process did not survive, or what may leak, are followed in the second sweep
 * of its events, before there is evidence. So which blocks are a family is known only afterwards,
 * and what was assumed is checked then. All others have a sweep of their own, after evidence_device
 * and evidence_live.
 *
 * Contract: heap memory, freed by event_pass_fini. Only blocks of a framework are followed where
 * there are any, since they are inside blocks of the driver.
 */
#pragma once

#include "analysis/explain/evidence/evidence.h"
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/site_trace.h"

/* Each failure that was not survived costs a pass over the events, so only the last ones are
 * judged. */
enum { FREED_SIZES_MAX = 4096, UNIT_SIZES_MAX = 64, JUDGED_MAX = 8 };

/* Sizes of blocks that were freed, thinned evenly when there are many. */
struct freed_sizes {
	uint64_t sizes[FREED_SIZES_MAX];
	size_t count;
	uint64_t seen, stride, most;
};

/* What a pass is about. */
struct event_pass_of {
	uint32_t process, device;
	const struct fact_incident *incident; /* NULL: the end */
	uint64_t request, total; /* bytes; CUF_UNKNOWN */
};

/* Large blocks, by their addresses, as each was when it was allocated; and their sizes. One of them
 * may turn out to be the first of a family. */
struct large_blocks {
	uint64_t least_bytes;
	struct large_block {
		uint64_t seq, bytes;
		uint64_t query_seq, since_query; /* before it */
		uint64_t allocated, same; /* before it: all bytes; blocks of its size */
	} *blocks;
	struct large_size { uint64_t allocs, frees; } *sizes;
	size_t block_count, block_room, size_count, size_room;
	struct hash_index by_address, by_bytes; /* places, plus 1 */
	uint64_t allocated; /* so far, all bytes */
	bool are_many; /* too many: nothing is known */
};

struct event_pass {
	const struct facts *facts;
	struct event_pass_of of;
	uint64_t until; /* seq */
	struct large_blocks large;
	bool is_late; /* the family is known before */
	uint64_t unit; /* then: the size of its blocks */
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
	uint64_t late_bytes; /* of the failing call site, served before it and recorded after */
	uint64_t capture_seq; /* last begin or end of a graph capture; 0 none */
	/* sizes that the failing call site got in the failing thread, a ring of the latest ones */
	uint64_t unit_sizes[UNIT_SIZES_MAX];
	size_t unit_size_count;
};

static inline bool incident_is_survived(const struct fact_incident *incident)
{
	return incident->outcome == OUTCOME_RECOVERED || incident->outcome == OUTCOME_HANDLED;
}
/* Whether the events up to an incident are followed. judged: how many later ones were, that did not
 * end their processes. */
bool event_pass_is_for(const struct facts *facts, const struct fact_incident *incident,
		       size_t *judged);
/* Takes part in the second sweep of a process: a pass for each such incident, or where it had none,
 * for the device where it may leak; FACT_NONE: none. */
void event_pass_listen(const struct facts *facts, uint32_t process, uint32_t leaking,
		       struct event_pass *heard[EVENT_PASSES],
		       struct sweep_consumer consumers[EVENT_PASSES]);
/* The pass for this evidence: one that heard the second sweep where it fits, which is taken, else
 * one of its own. heard: those of the process, or NULL. The caller ends it with event_pass_fini. */
struct event_pass *event_pass_for(const struct evidence *evidence, struct event_pass **heard);
void event_pass_fini(struct event_pass *pass); /* NULL is fine */
