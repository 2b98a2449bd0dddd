/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts pairs of numbers by key. Contract: no recursion, no allocation, any thread. libc's qsort
 * may allocate.
 */
#pragma once

#include <stdint.h>

struct cuf_pair {
	uint64_t key, value;
};

/* In place, n log n in the worst case too. */
void cuf_sort_pairs(struct cuf_pair *pairs, uint64_t count);

/*
 * With as much spare room as there are pairs, linear in their number. Equal keys keep their order.
 * Both are overwritten, and the one with the result is returned. count: below 2^32.
 */
struct cuf_pair *cuf_sort_pairs_using(struct cuf_pair *pairs, struct cuf_pair *spare,
				      uint64_t count);
