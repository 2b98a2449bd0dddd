/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which mean a live host block was sampled: the program may change it as it runs (cuflight_set_sample_bytes). Events have
 * theirs with them. Contract: pure; a block of the moment of a change may be taken for one of the next mean.
 */
#ifndef ANALYSIS_RECORDING_HOST_MEANS_H
#define ANALYSIS_RECORDING_HOST_MEANS_H

#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"

enum { HOST_MEANS_MAX = 16 }; /* changes; the recorder takes no more */

struct host_means {
	uint64_t first_bytes;     /* 0: every block was recorded */
	struct { uint32_t birth; uint64_t mean_bytes; } changes[HOST_MEANS_MAX];
	unsigned count;
};

struct host_means host_means_of(const struct reader *reader, const struct meta *meta);
/* birth: as a block has it, cuf_birth_encode. */
uint64_t host_means_at(const struct host_means *means, uint32_t birth);
uint64_t host_means_most(const struct host_means *means);

#endif
