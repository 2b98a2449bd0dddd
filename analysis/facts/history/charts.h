/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacked series over the moments of a timeline: of each device, of the blocks of frameworks in it,
 * and of the host memory of each process; by kind, role, call site and process. The parts of each
 * grouping add up to the sum at every moment.
 *
 * What a framework reserved is charged by role and call site to whoever holds the blocks inside,
 * and the rest of it is a part of its own; by kind and process, to whoever made it.
 *
 * Contract: charts_make's result is freed by charts_free and borrows from the timeline and facts.
 * The chart that the report is about comes first.
 */
#pragma once

#include "analysis/facts/history/timeline.h"

enum chart_grouping { BY_KIND, BY_ROLE, BY_SITE, BY_PROCESS, CHART_GROUPINGS };

struct chart_part {
	/* a kind, site or process; of a role, its text; FACT_NONE: the rest */
	uint32_t index;
	const char *role;  /* NULL: blocks without a known role */
	bool is_older;     /* as sampled, before the oldest event that is left */
	bool is_unused;    /* reserved by a framework and not given to anybody */
	uint64_t *bytes;   /* by moment */
};

struct chart {
	enum timeline_layer layer;
	uint32_t process, device; /* host: the process; else the device */
	uint64_t limit_bytes, total_bytes; /* CUF_UNKNOWN */
	uint64_t *sum;     /* by moment */
	bool is_inside;    /* by role and call site: what lies inside a framework's segments */
	struct { struct chart_part *parts; size_t count, room; } by[CHART_GROUPINGS];
};

struct charts { struct chart *items; size_t count; };

/* rows: for each site the one that stands for it: sites of one row are one part. is_host: host
 * memory is what the report is about. */
void charts_make(struct charts *charts, const struct timeline *timeline, const struct facts *facts,
		 const uint32_t *rows, bool is_host);
void charts_free(struct charts *charts);
