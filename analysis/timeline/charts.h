/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacked series over the moments of a timeline: of each device, of the blocks of frameworks in it,
 * and of the host memory of each process; by kind, role, call site and process. The parts of each
 * grouping add up to the sum at every moment.
 *
 * Contract: charts_make's result is freed by charts_free and borrows from the timeline and facts.
 * The chart that the report is about comes first.
 */
#ifndef ANALYSIS_TIMELINE_CHARTS_H
#define ANALYSIS_TIMELINE_CHARTS_H

#include "analysis/timeline/timeline.h"

enum chart_grouping { BY_KIND, BY_ROLE, BY_SITE, BY_PROCESS, CHART_GROUPINGS };

struct chart_part {
	/* a kind, site or process; of a role, its text; FACT_NONE: the rest */
	uint32_t index;
	const char *role;  /* NULL: blocks without a known role */
	bool is_older;     /* as sampled, before the oldest event that is left */
	uint64_t *bytes;   /* by moment */
};

struct chart {
	enum timeline_layer layer;
	uint32_t process, device; /* host: the process; else the device */
	uint64_t limit_bytes, total_bytes; /* CUF_UNKNOWN */
	uint64_t *sum;     /* by moment */
	struct { struct chart_part *parts; size_t count, room; } by[CHART_GROUPINGS];
};

struct charts { struct chart *items; size_t count; };

/* is_host: host memory is what the report is about. */
void charts_make(struct charts *charts, const struct timeline *timeline, const struct facts *facts,
		 bool is_host);
void charts_free(struct charts *charts);

#endif
