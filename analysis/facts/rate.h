/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the call sites of one row grow, together. Contract: pure; a rate is known where it is
 * that of the whole row, to a tenth: a rougher one is not printed.
 */
#pragma once

#include "analysis/facts/facts.h"

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
