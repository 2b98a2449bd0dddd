/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges that may nest, sorted once and searched by halving.
 *
 * Contract: add in any order, sort once, then find. A range is [start, end); empty ones are not taken. Where ranges nest
 * or overlap, the one that starts last wins, the shorter of two with one start. value is the caller's. The caller owns
 * the struct (zeroed to begin with) and ends it with fini. Dies on exhaustion of memory.
 */
#ifndef ADDRESS_RANGES_H
#define ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start, end;
	uint64_t value;
	uint32_t around; /* index + 1 of the nearest earlier range that this one starts in; 0 none */
};

struct address_ranges {
	struct address_range *list;
	size_t count, capacity;
};

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			uint64_t value);
void address_ranges_sort(struct address_ranges *ranges);
const struct address_range *address_ranges_find(const struct address_ranges *ranges, uint64_t address); /* NULL: in none */
void address_ranges_fini(struct address_ranges *ranges);

#endif
