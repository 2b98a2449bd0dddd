/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a whole run, over its processes and devices. Contract: pure; as in facts.h. */
#pragma once

#include "analysis/facts/facts.h"

/* From the first start to the last end; 0 where the clock was set back. */
uint64_t facts_duration_ns(const struct facts *facts);
/* The sum of the devices' peaks; CUF_UNKNOWN: no device was used. */
uint64_t facts_device_peak(const struct facts *facts);
/* The largest resident memory of one process; CUF_UNKNOWN: not recorded. */
uint64_t facts_host_peak(const struct facts *facts);
/*
 * Whether the fullest moment of host memory is what a reader asks for: the program ended by itself,
 * nothing failed or leaks, and half of what it held then is gone.
 */
bool facts_ask_for_peak(const struct facts *facts);

/*
 * How fast the call sites of one row grow, together. Contract: pure; a rate is known where it is
 * that of the whole row, to a tenth: a rougher one is not printed.
 */

struct fact_rate {
	double per_s, half_s;           /* half of the interval; the sites' bounds add up */
	uint64_t bytes, of_no_rate;     /* what they hold; sites without a rate of them */
	uint64_t per_request;
	uint64_t of_no_requests;        /* sites whose requests the program does not mark */
};

void fact_rate_add(struct fact_rate *rate, const struct fact_site *site);
/* Bytes in a second; 0: not known. */
uint64_t fact_rate_per_s(const struct fact_rate *rate);
/* Bytes with each request that the program marks; 0: not known. */
uint64_t fact_rate_per_request(const struct fact_rate *rate);
