/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sites: what each call stack holds of each kind on each device, and what it did. Contract: heap memory,
 * freed by sites_fini; pointers are good until the next sites_get.
 */
#ifndef ANALYSIS_MODEL_SITES_H
#define ANALYSIS_MODEL_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/model/trend.h"

#define SITE_NONE UINT32_MAX

/* What a site held at the marks, by windows of marks: the least of each window, and where the site stands. */
struct site_floor {
	int64_t least[TREND_MAX];
	int64_t live;             /* running */
	uint32_t passed;          /* marks that were taken into account */
};

struct site {
	uint32_t stack;
	uint8_t kind, device;
	uint16_t hook, label;     /* of its youngest block */
	/* live at the moment; host=sampled: estimates */
	uint64_t live_bytes, live_count;
	double live_variance, live_third; /* central moments of live_bytes; 0 exact */
	uint64_t first_ns, last_ns; /* births of the oldest and youngest live block; CUF_UNKNOWN */
	uint64_t old_bytes;       /* of its live blocks that were born before the last quarter of the marks */
	/* over the events kept, up to the moment */
	uint64_t alloc_count, alloc_bytes, free_count;
	uint64_t freed_age_ms;    /* sum over its frees */
	uint64_t late_allocs;     /* in the second half of the marks */
	uint64_t thread_bits;     /* of the threads that allocated: a bit each, by a hash */
	uint64_t least_bytes, most_bytes; /* of one block it allocated; 0: none */
	int64_t net_bytes, running_bytes, highest_bytes; /* relative to the start of the events */
	uint32_t last_cycle, cycles; /* cycles in which it allocated */
	uint32_t floor;           /* index of its struct site_floor; SITE_NONE */
	bool holds_blocks;        /* a framework's allocator cuts its blocks: what grows, and leaks, are those inside */
};

struct sites {
	struct site *items; size_t count, room;
	uint32_t *index; size_t index_room;
	uint32_t last;            /* asked for last: an allocation and its free often follow each other */
};

void sites_init(struct sites *sites);
void sites_fini(struct sites *sites);
struct site *sites_get(struct sites *sites, unsigned kind, unsigned device, uint32_t stack);

#endif
