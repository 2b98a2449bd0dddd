/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling mean of a live host block. A program can change the mean while it runs
 * (cuflight_set_sample_bytes). Events carry theirs; ledger entries carry only their birth.
 *
 * Contract: pure. A block allocated at the moment of a change may get the mean after it.
 */
#pragma once

#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"

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
