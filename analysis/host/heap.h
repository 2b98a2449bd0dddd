/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family of one process: what is live, by site and in all, from the host ledger; estimated with its 95 %
 * interval when the recorder sampled. Contract: the figures are those of the end of the recording, brought back to
 * time_ns (CLOCK_MONOTONIC; CUF_UNKNOWN: not at all) by the events since, to some milliseconds.
 */
#ifndef ANALYSIS_HOST_HEAP_H
#define ANALYSIS_HOST_HEAP_H

#include "analysis/recording/host_means.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/sites.h"

/* An unbiased estimate and estimates of its second and third central moments. */
struct host_estimate { double value, variance, third; };

/*
 * A block that was recorded, with this chance, and stands for weight: the central moments of a Bernoulli trial of height
 * weight, over its chance. sign -1 takes it away again.
 */
void host_estimate_add(struct host_estimate *estimate, double weight, double chance, double sign);

/* The nearest whole number of bytes or blocks; 0 for what is negative or beyond any number. */
uint64_t host_whole(double value);

struct heap_totals {
	bool known;               /* false: host=off, or the ledger is cut away */
	bool estimated;
	uint64_t mean_bytes;      /* of the sampler, the largest if it changed; 0: every block is known */
	struct host_estimate bytes, count;
};

/*
 * The 95 % interval of an estimate: the exact interval of a Poisson count, of as many samples of one weight as have the
 * estimate's second and third moments. So it is right with few samples, too, and is not empty with none; but it cannot
 * know of a size of which nothing was sampled, beside others that were.
 * unseen: the largest weight that a block may have had which was not sampled; INFINITY when there is no bound.
 */
struct host_interval { double low, high; };
struct host_interval host_estimate_interval(const struct host_estimate *estimate, double unseen);

/* Adds every live host block to its site; births too. */
void heap_read(const struct reader *reader, const struct host_means *means, uint64_t time_ns,
	       struct sites *sites, struct heap_totals *out);

/* The live blocks, row by row, with the numbers of their sites. false: at the end. Start with *at = 0. */
struct heap_block { uint32_t stack, birth; uint64_t bytes, birth_ns; };
struct heap_row { struct heap_block blocks[SITES_ROW]; uint32_t sites[SITES_ROW]; size_t count; };
bool heap_row(const struct reader *reader, uint64_t *at, struct sites *sites, struct heap_row *row);

#endif
