/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts pairs of numbers in place by key. Contract: no recursion, no allocation, n log n in the
 * worst case too, any thread. libc's qsort may allocate.
 */
#ifndef CUF_SORT_H
#define CUF_SORT_H

#include <stdint.h>

struct cuf_pair {
	uint64_t key, value;
};

void cuf_sort_pairs(struct cuf_pair *pairs, uint64_t count);

#endif
