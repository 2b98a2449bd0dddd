/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth judged by the ages of blocks. The time observed is divided into equal bins. A call site
 * that leaks has live blocks of every age; one that filled a cache has old blocks only, and one
 * that replaces its blocks has young ones only. analysis/growth/README.md has the rule with its
 * numbers and their reasons.
 *
 * Where memory ran out, a site is judged from where its work began, however late that was. So the
 * second half of the time is kept in bins half as wide, its second half again, and so on: parts.
 * Any of these stretches up to the end has its own equal bins then.
 *
 * Contract: pure sums, no allocation. Times are CLOCK_MONOTONIC ns; bytes are estimates with a
 * variance where host memory was sampled, and variance 0 where it was not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	SURVIVAL_BINS = 24,    /* of one stretch */
	SURVIVAL_HALVINGS = 4, /* the shortest stretch is the last sixteenth of the time */
	SURVIVAL_PARTS = SURVIVAL_BINS / 2 * SURVIVAL_HALVINGS + SURVIVAL_BINS
};

/* The time observed. Events before events_ns are lost. span_least_s: shorter ones prove nothing,
 * unless memory ran out; 0: SURVIVAL_SPAN_S. */
#define SURVIVAL_SPAN_S 5.0
struct survival_time {
	uint64_t begin_ns, end_ns, events_ns;
	double span_least_s;
};

/* Of one call site. */
struct survival {
	struct survival_part {
		double bytes, variance; /* live blocks that were born in this part */
		double net_bytes;       /* allocated less freed in it, as the events state */
		double freed_bytes;     /* of all call sites together only: their work */
		uint32_t count;         /* recorded blocks, each a sample where host memory is */
	} parts[SURVIVAL_PARTS];
};

/* The part of a moment; moments outside belong to the nearest one. end_ns, unless NULL: when the
 * part ends; the last one never does. */
unsigned survival_part(const struct survival_time *time, uint64_t time_ns, uint64_t *end_ns);

/* The part in which all but a little of what is live began to be made. */
unsigned survival_begin(const struct survival *survival);

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
	double pace;                   /* of the last third, by that of the middle */
};
/*
 * total: of all call sites, net_bytes and freed_bytes; what one site made where another freed as
 * much is no growth. is_failure: memory ran out at the end, so that no time needs to have passed,
 * what begins late is judged from there, and the rise may keep pace with the work.
 */
struct survival_growth survival_judge(const struct survival *survival, const struct survival *total,
				      const struct survival_time *time, bool is_failure);
