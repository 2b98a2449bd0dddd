/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and extremes; what is unknown is left out. */
#include "analysis/facts/totals.h"

#include <math.h>

uint64_t facts_duration_ns(const struct facts *facts)
{
	uint64_t start = CUF_UNKNOWN, end = 0;

	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *process = &facts->processes[i];

		if (process->start_ns < start)
			start = process->start_ns;
		if (process->end_ns != CUF_UNKNOWN && process->end_ns > end)
			end = process->end_ns;
	}
	return start != CUF_UNKNOWN && end > start ? end - start : 0;
}

uint64_t facts_device_peak(const struct facts *facts)
{
	uint64_t sum = 0;
	bool any = false;

	for (size_t i = 0; i < facts->device_count; i++)
		if (facts->devices[i].peak_bytes != CUF_UNKNOWN && facts->devices[i].peak_bytes) {
			sum += facts->devices[i].peak_bytes;
			any = true;
		}
	return any ? sum : CUF_UNKNOWN;
}

uint64_t facts_host_peak(const struct facts *facts)
{
	uint64_t most = CUF_UNKNOWN;

	for (size_t i = 0; i < facts->process_count; i++) {
		uint64_t peak = facts->processes[i].host.rss_peak_bytes;

		if (peak != CUF_UNKNOWN && (most == CUF_UNKNOWN || peak > most))
			most = peak;
	}
	return most;
}

#define PEAK_LEAST_BYTES (16ull << 20)

bool facts_ask_for_peak(const struct facts *facts)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	const struct fact_host *host = &process->host;
	uint64_t live = host->malloc_live_bytes;

	if (process->end != END_EXIT || facts->cause || facts->incident_count ||
	    facts->device_count || host->at_peak)
		return false;
	if (live != CUF_UNKNOWN && host->python_live_bytes != CUF_UNKNOWN)
		live += host->python_live_bytes;
	return host->live_peak_bytes != CUF_UNKNOWN && live != CUF_UNKNOWN &&
	       host->live_peak_bytes >= PEAK_LEAST_BYTES && host->live_peak_bytes / 2 > live;
}

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
