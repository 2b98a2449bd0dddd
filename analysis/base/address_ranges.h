/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges that may nest, sorted once and searched by bisection.
 *
 * Contract: add in any order, sort once, then find. A range is [start, end); an empty one is
 * ignored. Where ranges nest or overlap, the one that starts last wins, and of two with the same
 * start the shorter one. value is the caller's. The caller owns the struct (zeroed at first) and
 * ends it with fini. Dies on exhaustion.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start, end;
	uint64_t value;
	/* index + 1 of the nearest earlier range that this one starts in; 0 none */
	uint32_t around;
};

struct address_ranges {
	struct address_range *list;
	size_t count, capacity;
};

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			uint64_t value);
void address_ranges_sort(struct address_ranges *ranges);
/* The innermost range that has the address; NULL: none. */
const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address);
void address_ranges_fini(struct address_ranges *ranges);
