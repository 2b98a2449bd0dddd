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
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
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

/*
 * The sampling mean of a live host block. A program can change the mean while it runs
 * (cuflight_set_sample_bytes). Events carry theirs; ledger entries carry only their birth.
 *
 * Contract: pure. A block allocated at the moment of a change may get the mean after it.
 */

enum { HOST_MEANS_MAX = 16 }; /* changes; the recorder takes no more */

struct host_means {
	uint64_t first_bytes;     /* 0: every block was recorded */
	struct { uint32_t birth; uint64_t mean_bytes; } changes[HOST_MEANS_MAX];
	unsigned count;
};

struct host_means host_means_of(const struct reader *reader, const struct meta *meta);
/* The mean that held at a birth, encoded as in the ledger (cuf_birth_encode). */
uint64_t host_means_at(const struct host_means *means, uint32_t birth);
/* The largest mean of the recording: the bound of what one sample can stand for. */
uint64_t host_means_most(const struct host_means *means);
