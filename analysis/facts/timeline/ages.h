/* SPDX-License-Identifier: Apache-2.0 */
/* A table of lifetimes by size. Contract: pure. Sums saturate far beyond any recording. */
#pragma once

#include "analysis/facts/timeline/timeline.h"

/* The row of an age. */
static inline unsigned ages_of_ms(uint64_t ms)
{
	unsigned row = ms ? 64u - (unsigned)__builtin_clzll(ms) : 0;
	return row < TIMELINE_AGES - 1 ? row : TIMELINE_AGES - 2;
}

/* Blocks of this size; with a weight, each stands for so many. */
static inline void ages_add(struct timeline_ages *ages, unsigned row, uint64_t bytes,
			    uint64_t weight)
{
	unsigned size = bytes ? 63u - (unsigned)__builtin_clzll(bytes) : 0;
	uint64_t sum;

	if (size >= TIMELINE_SIZES)
		size = TIMELINE_SIZES - 1;
	if (__builtin_mul_overflow(bytes, weight, &sum) || sum > (uint64_t)1 << 50)
		sum = (uint64_t)1 << 50;
	ages->any = true;
	ages->count[row][size] += weight;
	ages->bytes[row][size] += sum;
}
