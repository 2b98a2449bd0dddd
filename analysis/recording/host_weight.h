/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sampled block stands for. A block of b bytes is recorded with probability p = 1 -
 * exp(-b/mean), so it counts as b/p bytes and 1/p blocks (Horvitz-Thompson). From
 * CUF_SAMPLE_EXACT_BYTES on every block is recorded.
 *
 * Contract: mean 0 means that every event was recorded. Pure except for a cached table of the last
 * mean: one thread at a time.
 */
#ifndef ANALYSIS_RECORDING_HOST_WEIGHT_H
#define ANALYSIS_RECORDING_HOST_WEIGHT_H

#include <stdint.h>

/* Bytes it stands for: b/p, rounded. */
uint64_t host_weight_bytes(uint64_t bytes, uint64_t mean_bytes);
/* Blocks it stands for: 1/p, rounded. */
uint64_t host_weight_count(uint64_t bytes, uint64_t mean_bytes);
/* The probability p, in (0, 1]. */
double host_weight_chance(uint64_t bytes, uint64_t mean_bytes);

#endif
