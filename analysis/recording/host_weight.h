/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sampled block stands for: a block of b bytes is recorded with probability p = 1 - exp(-b/mean), so it counts
 * as b/p bytes and 1/p blocks (Horvitz-Thompson); from CUF_SAMPLE_EXACT_BYTES on all are recorded. Contract: mean 0
 * means every event was recorded. Pure, but for a table of the last mean that was asked for: one thread at a time.
 */
#ifndef ANALYSIS_RECORDING_HOST_WEIGHT_H
#define ANALYSIS_RECORDING_HOST_WEIGHT_H

#include <stdint.h>

/* b/p, rounded. */
uint64_t host_weight_bytes(uint64_t bytes, uint64_t mean_bytes);
/* 1/p, rounded. */
uint64_t host_weight_count(uint64_t bytes, uint64_t mean_bytes);
/* p. */
double host_weight_chance(uint64_t bytes, uint64_t mean_bytes);

#endif
