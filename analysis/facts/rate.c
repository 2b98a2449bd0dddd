/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of slopes. */
#include "analysis/facts/rate.h"

#include <math.h>

enum { TENTH = 10 };

void fact_rate_add(struct fact_rate *rate, const struct fact_site *site)
{
	uint64_t bytes = site->bytes;

	if (bytes == CUF_UNKNOWN)
		return;
	rate->bytes += bytes;
	if (isfinite(site->slope_bytes_per_s) && isfinite(site->interval[0]) &&
	    isfinite(site->interval[1])) {
		rate->per_s += site->slope_bytes_per_s;
		rate->half_s += (site->interval[1] - site->interval[0]) / 2;
	} else {
		rate->of_no_rate += bytes;
	}
	if (site->cycles_basis == BASIS_OBSERVED && site->per_request_bytes != CUF_UNKNOWN)
		rate->per_request += site->per_request_bytes;
	else
		rate->of_no_requests += bytes;
}

uint64_t fact_rate_per_s(const struct fact_rate *rate)
{
	if (!(rate->per_s >= 1) || rate->per_s >= 0x1p63 ||
	    rate->half_s > rate->per_s / TENTH || rate->of_no_rate > rate->bytes / TENTH)
		return 0;
	return (uint64_t)rate->per_s;
}

uint64_t fact_rate_per_request(const struct fact_rate *rate)
{
	return rate->of_no_requests > rate->bytes / TENTH ? 0 : rate->per_request;
}
