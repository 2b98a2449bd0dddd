/* SPDX-License-Identifier: Apache-2.0 */
/* How much is left of each resource, and for how long. */
#include "analysis/explain/live/judge_parts.h"

#include <math.h>
#include "analysis/base/numbers.h"
#include "interpose/abi/format.h"

double judge_seconds_left(double headroom_bytes, double bytes_per_s)
{
	if (!(bytes_per_s > 0))
		return INFINITY;
	return fmax(headroom_bytes, 0) / bytes_per_s;
}

/* ---- what grows ---- */

static bool uses(const struct live_site *live, const struct live_resource *resource)
{
	if (resource->kind != LIVE_GPU)
		return live->site->kind == CUF_KIND_HOST;
	return live->site->device == resource->device;
}

static bool is_slope(const struct fact_site *site)
{
	return site->slope_bytes_per_s > 0 && isfinite(site->slope_bytes_per_s) &&
	       isfinite(site->interval[0]) && isfinite(site->interval[1]);
}

/* Slopes of what is proven add up, and so do their bounds. False: what rises is not judged yet. */
static bool add_slopes(const struct judgement *judgement, struct live_resource *resource)
{
	bool is_judged = !judgement->is_too_early;

	for (size_t i = 0; i < judgement->site_count; i++) {
		const struct live_site *live = &judgement->sites[i];

		if (!uses(live, resource))
			continue;
		if (live->state == LIVE_WARMING)
			is_judged = false;
		if (live->state < LIVE_GROWING || !is_slope(live->site))
			continue;
		resource->bytes_per_s[LIVE_EXPECTED] += live->site->slope_bytes_per_s;
		resource->bytes_per_s[LIVE_LOW] += live->site->interval[0];
		resource->bytes_per_s[LIVE_HIGH] += live->site->interval[1];
	}
	return is_judged || resource->bytes_per_s[LIVE_EXPECTED] > 0;
}

static void forecast(const struct judgement *judgement, struct live_resource *resource)
{
	bool is_judged = add_slopes(judgement, resource);
	const double *pace = resource->bytes_per_s;

	for (unsigned i = 0; i < sizeof resource->oom_s / sizeof *resource->oom_s; i++)
		resource->oom_s[i] = NAN;
	if (!is_judged || isnan(resource->headroom_bytes))
		return;
	resource->oom_s[LIVE_EXPECTED] =
		judge_seconds_left(resource->headroom_bytes, pace[LIVE_EXPECTED]);
	resource->oom_s[LIVE_SOONEST] =
		judge_seconds_left(resource->headroom_bytes, pace[LIVE_HIGH]);
	resource->oom_s[LIVE_LATEST] =
		judge_seconds_left(resource->headroom_bytes, pace[LIVE_LOW]);
}

/* ---- what is left ---- */

static const struct fact_recent *recent_of(const struct fact_process *process, uint32_t device)
{
	for (size_t i = 0; i < process->recent_count; i++)
		if (process->recent[i].device == device)
			return &process->recent[i];
	return NULL;
}

/* a - b of figures that may be unknown: then nothing. */
static double excess(uint64_t a, uint64_t b)
{
	if (!is_known(a) || !is_known(b))
		return 0;
	return (double)subtract_to_zero(a, b);
}

/*
 * Free at the low level between bursts. What a framework has reserved and not needed for an hour,
 * it can release. The largest burst of one process counts: those of several seldom coincide.
 */
static struct live_resource gpu_of(const struct facts *facts, uint32_t device)
{
	struct live_resource out = { .kind = LIVE_GPU, .device = device,
				     .limit_bytes = facts->devices[device].total_bytes,
				     .free_bytes = facts->devices[device].free_bytes,
				     .headroom_bytes = NAN };

	if (!is_known(out.free_bytes))
		return out;
	out.headroom_bytes = (double)out.free_bytes;
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_recent *recent = recent_of(&facts->processes[i], device);

		if (!recent || !end_may_run(facts->processes[i].end))
			continue;
		out.burst_bytes = most_of(out.burst_bytes, recent->burst_bytes);
		/* a part of a burst may be there now; a model that was loaded is none */
		out.headroom_bytes += fmin(excess(recent->live_bytes, recent->minute.low_bytes),
					   (double)recent->burst_bytes) +
				      excess(recent->minute.outer_peak_bytes,
					     recent->hour.inner_peak_bytes);
	}
	out.headroom_bytes -= (double)out.burst_bytes;
	return out;
}

/* What was resident within the hour and is not now. */
static uint64_t host_burst(const struct facts *facts)
{
	uint64_t burst = 0;

	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *process = &facts->processes[i];
		const struct fact_recent *recent = recent_of(process, FACT_NONE);

		if (recent && end_may_run(process->end))
			burst = most_of(burst, (uint64_t)excess(recent->hour.inner_peak_bytes,
								process->host.rss_bytes));
	}
	return burst;
}

static struct live_resource host_of(const struct judge_seen *seen, enum live_resource_kind kind)
{
	const struct fact_host *host = &seen->facts->processes[seen->facts->focus].host;
	struct live_resource out = { .kind = kind, .device = FACT_NONE,
				     .limit_bytes = host->memory_total_bytes,
				     .free_bytes = seen->machine_available_bytes,
				     .burst_bytes = host_burst(seen->facts),
				     .headroom_bytes = NAN };
	uint64_t used = seen->cgroup_working_bytes;

	if (kind == LIVE_CGROUP) {
		out.limit_bytes = host->cgroup_max_bytes;
		if (!is_known(used))
			used = host->cgroup_bytes;
		out.free_bytes = is_known(used) && is_known(out.limit_bytes)
					 ? subtract_to_zero(out.limit_bytes, used)
					 : CUF_UNKNOWN;
	}
	if (is_known(out.free_bytes))
		out.headroom_bytes = (double)out.free_bytes - (double)out.burst_bytes;
	return out;
}

size_t judge_resources(const struct judge_seen *seen, const struct judgement *judgement,
		       struct live_resource *out, size_t most)
{
	const struct facts *facts = seen->facts;
	size_t count = 0;

	for (uint32_t d = 0; d < facts->device_count && count < most; d++)
		out[count++] = gpu_of(facts, d);
	if (facts->process_count)
		for (enum live_resource_kind kind = LIVE_CGROUP;
		     kind < LIVE_RESOURCES && count < most; kind++)
			out[count++] = host_of(seen, kind);
	for (size_t i = 0; i < count; i++)
		forecast(judgement, &out[i]);
	return count;
}
