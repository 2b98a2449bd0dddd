/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of numbers sorted in place by key: no recursion, no allocation, no worst case. libc's qsort may allocate. */
#ifndef CUF_PAIRS_H
#define CUF_PAIRS_H

#include <stdint.h>

struct cuf_pair { uint64_t key, value; };

void cuf_pairs_sort(struct cuf_pair *pairs, uint64_t count);

#endif
