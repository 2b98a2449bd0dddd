/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of call sites: what each holds, of each kind and on each device, and how that changed.
 * The stack of a site is that of reader_call_site.
 *
 * Contract: heap memory, freed by sites_fini. Pointers are valid until the next sites_get.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/trend.h"

#define SITE_NONE UINT32_MAX

/* What a site held at the marks: the minimum of each window of marks. */
struct site_floor { int64_t least[TREND_MAX]; };

/* Members are in the order in which passes over millions of events and blocks use them. */
struct site {
	uint32_t stack;
	uint16_t hook, label;     /* of its youngest block */
	uint8_t kind, device;
	uint8_t role;             /* enum cuf_role of its blocks, as recorded; 0: none */
	/* a framework splits its blocks: growth and leaks are those of the blocks inside */
	bool holds_blocks;
	/* live at the moment; estimates when host=sampled */
	uint64_t live_bytes, live_count;
	double live_variance, live_third; /* central moments of live_bytes; 0: exact */
	/* birth of the oldest and of the youngest live block; CUF_UNKNOWN */
	uint64_t first_ns, last_ns;
	uint64_t old_bytes;       /* of its live blocks born before the last quarter of the marks */
	/* over the events that are left, up to the moment */
	int64_t net_bytes, highest_bytes; /* relative to the start of the events */
	uint64_t alloc_count, alloc_bytes, free_count;
	uint64_t freed_age_ms;    /* sum over its frees */
	uint64_t least_bytes, most_bytes; /* of one block that it allocated; 0: none */
	uint64_t thread_bits;     /* one bit, by a hash, for each thread that allocated */
	uint32_t large_blocks;    /* of a mebibyte and more, and how often one of them was at */
	uint32_t doublings;       /* least half as large again as the largest before it */
	/* second pass: from mark to mark */
	uint64_t late_allocs;     /* in the second half of the marks */
	int64_t walk_bytes;       /* what it holds at the current event */
	int64_t round_bytes;      /* the most of that since it last held next to nothing */
	int64_t before_bytes;     /* the most of that in earlier such rounds, */
	uint32_t rounds;          /* which are so many */
	uint32_t last_cycle, cycles; /* cycles in which it allocated */
	uint32_t passed;          /* marks that are counted in its minimum */
	uint32_t floor;           /* index of its struct site_floor; SITE_NONE */
};

struct sites {
	struct site *items;
	size_t count, room;
	struct hash_index index; /* kind, device and stack to a place in items */
	/* The same without hashing, plus one, for low stacks of one kind on one device: the first
	 * that is asked for. Nearly all look-ups are of these. */
	uint32_t *direct;
	size_t direct_room;
	uint64_t direct_key; /* kind and device, as in the keys of the index */
};

void sites_init(struct sites *sites);
void sites_fini(struct sites *sites);
struct site *sites_get(struct sites *sites, unsigned kind, unsigned device, uint32_t stack);
/* The sites of a row of events or blocks. Looked up together, their cache misses overlap. numbers
 * are indices into items, since pointers move. */
enum { SITES_ROW = 64 };
struct site_key { uint32_t stack; uint8_t kind, device; };
void sites_get_row(struct sites *sites, const struct site_key *keys, size_t count,
		   uint32_t *numbers);
