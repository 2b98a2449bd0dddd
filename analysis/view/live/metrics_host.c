/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of host memory and of control groups. A process that has ended has none. */
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"

/* One figure of each process that runs. */
static void put_figures(struct exposition *out, uint64_t (*figure)(const struct levels *levels))
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		if (watch_runs(process))
			put_bytes(out, figure(&process->levels), process->name);
}

static uint64_t sampled(const struct levels *levels, uint64_t figure)
{
	return levels->sample.time_ns ? figure : CUF_UNKNOWN;
}

static uint64_t live(const struct levels *levels)
{
	if (levels->header.options_host_mode == CUF_HOST_OFF)
		return CUF_UNKNOWN;
	return sampled(levels, levels->sample.host_live_bytes);
}
static void put_live(struct exposition *out) { put_figures(out, live); }
const struct exposed metric_host_live = {
	"cuflight_host_live_bytes", METRIC_GAUGE, "process",
	"Live host memory of malloc, maps and Python's objects; an estimate in sampled mode.",
	"last sample", put_live,
};

static uint64_t resident(const struct levels *levels)
{
	return sampled(levels, levels->sample.rss_bytes);
}
static void put_resident(struct exposition *out) { put_figures(out, resident); }
const struct exposed metric_host_resident = {
	"cuflight_host_resident_bytes", METRIC_GAUGE, "process",
	"Resident memory of the process (RSS).", "last sample", put_resident,
};

static uint64_t pinned(const struct levels *levels)
{
	return sampled(levels, levels->sample.pinned_bytes);
}
static void put_pinned(struct exposition *out) { put_figures(out, pinned); }
const struct exposed metric_pinned = {
	"cuflight_pinned_bytes", METRIC_GAUGE, "process",
	"Page-locked host memory that CUDA allocated or registered.", "last sample", put_pinned,
};

/* The files are those of now; where they cannot be seen, the recorder's sample has to do. */
static uint64_t group(const struct levels *levels)
{
	return levels->cgroup.bytes != CUF_UNKNOWN ?
		       levels->cgroup.bytes : sampled(levels, levels->sample.cgroup_bytes);
}
static void put_group(struct exposition *out) { put_figures(out, group); }
const struct exposed metric_cgroup_memory = {
	"cuflight_cgroup_memory_bytes", METRIC_GAUGE, "process",
	"Memory of the process's control group, files included.", "scrape, else last sample",
	put_group,
};

static uint64_t working(const struct levels *levels) { return levels->cgroup.working_bytes; }
static void put_working(struct exposition *out) { put_figures(out, working); }
const struct exposed metric_cgroup_working = {
	"cuflight_cgroup_memory_working_bytes", METRIC_GAUGE, "process",
	"The same without pages of files that the kernel drops before it kills.", "scrape",
	put_working,
};

static uint64_t limit(const struct levels *levels) { return levels->cgroup.limit_bytes; }
static void put_limit(struct exposition *out) { put_figures(out, limit); }
const struct exposed metric_cgroup_limit = {
	"cuflight_cgroup_memory_limit_bytes", METRIC_GAUGE, "process",
	"Limit of the process's control group.", "scrape", put_limit,
};

static void put_pressure(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		if (!watch_runs(process))
			continue;
		put_number(out, process->levels.cgroup.some_s, process->name, "some");
		put_number(out, process->levels.cgroup.full_s, process->name, "full");
	}
}
const struct exposed metric_cgroup_pressure = {
	"cuflight_cgroup_pressure_seconds_total", METRIC_COUNTER, "process,kind=some|full",
	"Time that some or all tasks of the control group waited for memory.", "scrape",
	put_pressure,
};
