/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family of one process: what is live, by site and in all, from the host ledger; estimated with its 95 %
 * interval when the recorder sampled. Contract: the figures are those of the end of the recording, brought back to
 * time_ns (CLOCK_MONOTONIC; CUF_UNKNOWN: not at all) by the events since, to some milliseconds.
 */
#ifndef ANALYSIS_MODEL_HOST_MEMORY_H
#define ANALYSIS_MODEL_HOST_MEMORY_H

#include "analysis/model/reader.h"
#include "analysis/model/sites.h"

struct host_memory {
	bool known;               /* false: host=off, or the ledger is cut away */
	bool estimated;
	double bytes, count, variance;
};

/* Adds every live host block to its site; births too. */
void host_memory_read(const struct reader *reader, uint64_t time_ns, struct sites *sites, struct host_memory *out);

/* The live blocks one by one: for growth_birth. false: at the end. Start with *at = 0. */
struct host_live { uint32_t stack; uint64_t bytes, birth_ns; };
bool host_memory_next(const struct reader *reader, uint64_t *at, struct host_live *block);

#endif
