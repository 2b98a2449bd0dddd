/* SPDX-License-Identifier: Apache-2.0 */
/* Nesting address ranges in one sorted array; knows nothing of symbols or files. */
#include "analysis/base/address_ranges.h"

#include <libiberty/libiberty.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"

/* Real nesting is shallow. In a hostile file every range could be inside every other, which would
 * make each look-up linear. */
#define NESTING_MAX 64

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end, uint64_t value)
{
	if (start >= end || ranges->count >= UINT32_MAX - 1)
		return;
	if (ranges->count == ranges->capacity) {
		ranges->capacity = 2 * ranges->capacity + 64;
		ranges->list = xrealloc(ranges->list, ranges->capacity * sizeof *ranges->list);
	}
	ranges->list[ranges->count++] =
		(struct address_range){ .start = start, .end = end, .value = value };
}

/* Compares the value last: qsort is not stable, and results must be reproducible. */
static int compare(const void *a, const void *b)
{
	const struct address_range *left = a, *right = b;

	if (left->start != right->start)
		return compare_numbers(left->start, right->start);
	if (left->end != right->end)
		return compare_numbers(right->end, left->end);
	return compare_numbers(left->value, right->value);
}

/* Links each range to the nearest earlier one that it starts in. All candidates for that are on the
 * chain of the range before it, so the links cost amortised constant time. */
void address_ranges_sort(struct address_ranges *ranges)
{
	struct address_range *list = ranges->list;

	if (!ranges->count)
		return;
	qsort(list, ranges->count, sizeof *list, compare);
	list[0].around = 0;
	for (size_t i = 1; i < ranges->count; i++) {
		uint32_t around = (uint32_t)i; /* index + 1 of the one before */
		while (around && list[around - 1].end <= list[i].start)
			around = list[around - 1].around;
		list[i].around = around;
	}
}

const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address)
{
	size_t low = 0, high = ranges->count;
	uint32_t at;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	at = (uint32_t)low; /* index + 1 of the last range that starts at or before the address */
	for (unsigned steps = 0; at && steps < NESTING_MAX; steps++) {
		if (address < ranges->list[at - 1].end)
			return &ranges->list[at - 1];
		at = ranges->list[at - 1].around;
	}
	return NULL;
}

void address_ranges_fini(struct address_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct address_ranges){ 0 };
}
