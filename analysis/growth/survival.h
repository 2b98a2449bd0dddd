/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth judged by the ages of blocks. The time observed is divided into equal bins. A call site
 * that leaks has live blocks of every age; one that filled a cache has old blocks only, and one
 * that replaces its blocks has young ones only. analysis/growth/README.md has the rule with its
 * numbers and their reasons.
 *
 * Contract: pure sums, no allocation. Times are CLOCK_MONOTONIC ns; bytes are estimates with a
 * variance where host memory was sampled, and variance 0 where it was not.
 */
#ifndef ANALYSIS_GROWTH_SURVIVAL_H
#define ANALYSIS_GROWTH_SURVIVAL_H

#include <stdbool.h>
#include <stdint.h>

enum { SURVIVAL_BINS = 24 };

/* The time observed. Events before events_ns are lost. */
struct survival_time { uint64_t begin_ns, end_ns, events_ns; };

/* Of one call site. */
struct survival {
	struct {
		double bytes, variance; /* live blocks that were born in this bin */
		double net_bytes;       /* allocated less freed in this bin, as the events state */
		uint32_t count;         /* recorded blocks, each a sample where host memory is */
	} bins[SURVIVAL_BINS];
};

/* The bin of a moment; moments outside belong to the nearest bin. */
unsigned survival_bin(const struct survival_time *time, uint64_t time_ns);

/* Adds what another call site made and freed. */
void survival_add(struct survival *survival, const struct survival *other);

enum survival_verdict {
	SURVIVAL_NOTHING, /* does not grow, or nothing is proven */
	SURVIVAL_GROWING, /* was made all along, stays, and still rises at the end */
	SURVIVAL_LASTING  /* the same for so long, and so evenly, that it is no cache */
};

struct survival_growth {
	enum survival_verdict verdict;
	double bytes_per_s, low, high; /* 95 % interval; of the time judged */
};
/*
 * total: the net_bytes of all call sites; what one site made where another freed as much is no
 * growth. is_failure: memory ran out at the end, so that no time needs to have passed.
 */
struct survival_growth survival_judge(const struct survival *survival, const struct survival *total,
				      const struct survival_time *time, bool is_failure);

#endif
