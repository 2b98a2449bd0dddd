/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By how much a process needed more of a device when a request failed than ever before, and for
 * what. Compared are the failure, its request included, and the highest moment of the first three
 * quarters of the events. Whoever needed more is what grew: without that, the earlier moment would
 * only have come again.
 *
 * Contract: plain data. Bytes are those of blocks, without rounding and slack. A part is never more
 * than the whole growth. DEMAND_NONE: the process needed no more than before, or has no history.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum demand_part {
	DEMAND_NONE,
	DEMAND_LEAK,       /* call sites that only grow */
	DEMAND_CACHE,      /* a cache that grows within a request */
	DEMAND_CONCURRENT, /* more requests at once */
	DEMAND_LOAD,       /* blocks that stay: weights, caches, optimizer states */
	DEMAND_KEPT,       /* blocks that stay from work that goes on, and are no proven leak */
	DEMAND_WORK,       /* a request larger than before */
	DEMAND_MAX
};

struct demand {
	uint64_t before_bytes, now_bytes; /* now: with the failed request */
	uint64_t grown_bytes;             /* now - before; 0: no more than before */
	double seconds;                   /* between the two moments */
	uint64_t by[DEMAND_MAX];          /* of grown_bytes; parts that shrank are left out */
	enum demand_part most;            /* which of them grew most */
};

/*
 * What could be taken away, defects first; explain/budget.h decides between them.
 * Contract: plain data; removals.c fills it. Bytes CUF_UNKNOWN: the thing is not there, or its size
 * is unknown.
 */
/* Each with the words that follow "without". */
#define REMOVALS(row) \
	row(LADDER, "the smaller blocks of the series") \
	row(LEAK, "the leak") \
	row(TENANT, "the other processes") \
	row(LIBRARIES, "what libraries allocated") \
	row(STRANDED, "the free memory of other pools") \
	row(GAPS, "the gaps") \
	row(CAP, "the limit below the device's size") \
	row(CONCURRENCY, "more requests at once than before") \
	row(CACHE, "the growth of the KV cache") \
	row(SLOTS, "more than one sequence") \
	row(KV, "the reserved KV cache") \
	row(WORK, "a step larger than earlier ones") \
	row(LOAD, "what is still being loaded")

enum removed {
	REMOVED_NOTHING, /* of causes that are no amount of memory */
#define ROW(name, words) REMOVED_##name,
	REMOVALS(ROW)
#undef ROW
	REMOVAL_MAX
};

struct removal {
	uint64_t bytes;    /* that it frees */
	/* it is what grew: without it the earlier moment would only have come again */
	bool stops_growth;
};
