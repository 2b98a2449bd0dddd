/* SPDX-License-Identifier: Apache-2.0 */
/* Heapsort; and by digits of 11 bits, from the lowest, where there is room. */
#include "interpose/platform/sort.h"

#include "interpose/platform/laws.h"

/* Restores the heap below root, whose children are heaps already. */
static void sift_down(struct cuf_pair *pairs, uint64_t root, uint64_t count)
{
	struct cuf_pair moving = pairs[root];

	for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && pairs[child + 1].key > pairs[child].key)
			child++;
		if (pairs[child].key <= moving.key)
			break;
		pairs[root] = pairs[child];
	}
	pairs[root] = moving;
}

void cuf_sort_pairs(struct cuf_pair *pairs, uint64_t count)
{
	for (uint64_t i = count / 2; i-- > 0;)
		sift_down(pairs, i, count);
	for (uint64_t end = count; end-- > 1;) {
		struct cuf_pair top = pairs[0];

		pairs[0] = pairs[end];
		pairs[end] = top;
		sift_down(pairs, 0, end);
	}
}

/* ---- by digits ---- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* The bits in which any two keys differ. */
static uint64_t differing_bits(const struct cuf_pair *pairs, uint64_t count)
{
	uint64_t differing = 0;

	for (uint64_t i = 1; i < count; i++)
		differing |= pairs[i].key ^ pairs[0].key;
	return differing;
}

/* Writes `from` to `to` in the order of one digit. */
static void sort_by_digit(const struct cuf_pair *from, struct cuf_pair *to, uint64_t count,
			  unsigned shift)
{
	uint32_t place[DIGITS] = { 0 }, next = 0;

	for (uint64_t i = 0; i < count; i++)
		place[from[i].key >> shift & (DIGITS - 1)]++;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		uint32_t here = place[digit];

		place[digit] = next;
		next += here;
	}
	for (uint64_t i = 0; i < count; i++)
		to[place[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

/* A digit begins at a bit in which keys differ: what all keys share needs no pass. */
struct cuf_pair *cuf_sort_pairs_using(struct cuf_pair *pairs, struct cuf_pair *spare,
				      uint64_t count)
{
	uint64_t differing = differing_bits(pairs, count);

	while (differing) {
		const unsigned shift = (unsigned)__builtin_ctzll(differing);
		struct cuf_pair *sorted = spare;

		sort_by_digit(pairs, sorted, count, shift);
		spare = pairs;
		pairs = sorted;
		differing &= ~(uint64_t)(DIGITS - 1) << shift;
	}
	return pairs;
}
