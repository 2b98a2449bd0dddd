/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sampled block stands for. A block of b bytes is recorded with probability p = 1 -
 * exp(-b/mean), so it counts as b/p bytes and 1/p blocks (Horvitz-Thompson). From
 * CUF_SAMPLE_EXACT_BYTES on every block is recorded.
 *
 * Contract: mean 0 means that every event was recorded. Pure; each thread has a table of the last
 * mean.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* The probability p, in (0, 1); of a block that is sampled. */
double host_weight_drawn_chance(uint64_t bytes, uint64_t mean_bytes);
/* b/p of such a block, rounded. */
uint64_t host_weight_drawn_bytes(uint64_t bytes, uint64_t mean_bytes);

/* Whether such a block is recorded by chance. */
static inline bool host_weight_is_drawn(uint64_t bytes, uint64_t mean_bytes)
{
	return mean_bytes && bytes && bytes < CUF_SAMPLE_EXACT_BYTES;
}

/* The probability p, in (0, 1]. */
static inline double host_weight_chance(uint64_t bytes, uint64_t mean_bytes)
{
	if (!host_weight_is_drawn(bytes, mean_bytes))
		return 1;
	return host_weight_drawn_chance(bytes, mean_bytes);
}

/* Bytes it stands for: b/p, rounded. */
static inline uint64_t host_weight_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	if (!host_weight_is_drawn(bytes, mean_bytes))
		return bytes;
	return host_weight_drawn_bytes(bytes, mean_bytes);
}

/* Blocks it stands for: 1/p, rounded. */
static inline uint64_t host_weight_count(uint64_t bytes, uint64_t mean_bytes)
{
	double chance = host_weight_chance(bytes, mean_bytes);

	return chance < 1 ? (uint64_t)llround(1 / chance) : 1;
}
