/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of what the judge reports, and of extremes lately: analysis/facts/live.h. */
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"

static const char *const resources[LIVE_RESOURCES] = {
	[LIVE_GPU] = "gpu", [LIVE_CGROUP] = "cgroup", [LIVE_MACHINE] = "host",
};

/* Calls put for each resource of each process that runs; label is NULL where it is no GPU. */
typedef void put_resource(struct exposition *out, const char *process,
			  const struct live_resource *resource, const struct gpu_label *label);

static void put_resources(struct exposition *out, put_resource *put)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		for (size_t i = 0; watch_runs(process) && process->pass &&
				   i < process->pass->resource_count; i++) {
			const struct live_resource *resource = &process->pass->resources[i];
			const struct pass_device *device =
				&process->pass->devices[resource->device % CUF_DEVICES_MAX];
			struct gpu_label label = gpu_label(device->ordinal, device->uuid);

			put(out, process->name, resource,
			    resource->kind == LIVE_GPU ? &label : NULL);
		}
}

static void put_headroom(struct exposition *out, const char *process,
			 const struct live_resource *resource, const struct gpu_label *label)
{
	if (label)
		put_number(out, resource->headroom_bytes, process, label->gpu, label->uuid);
}
static void put_headrooms(struct exposition *out) { put_resources(out, put_headroom); }
const struct exposed metric_headroom = {
	"cuflight_gpu_memory_headroom_bytes", METRIC_GAUGE, "process,gpu,UUID",
	"Free at the low level between bursts, with what the framework can release, less the "
	"largest burst seen; negative: the largest work so far would fail now.", "last pass",
	put_headrooms,
};

static const char *gpu_or_none(const struct gpu_label *label)
{
	return label ? label->gpu : NULL;
}

static const char *uuid_or_none(const struct gpu_label *label)
{
	return label ? label->uuid : NULL;
}

static void put_growth(struct exposition *out, const char *process,
		       const struct live_resource *resource, const struct gpu_label *label)
{
	static const char *const bounds[] = { [LIVE_EXPECTED] = "expected", [LIVE_LOW] = "low",
					      [LIVE_HIGH] = "high" };

	/* without a forecast nothing is known of the pace, either */
	for (unsigned i = 0; resource->oom_s[LIVE_EXPECTED] >= 0 && i < 3; i++)
		put_number(out, resource->bytes_per_s[i], process, resources[resource->kind],
			   gpu_or_none(label), uuid_or_none(label), bounds[i]);
}
static void put_growths(struct exposition *out) { put_resources(out, put_growth); }
const struct exposed metric_growth = {
	"cuflight_growth_bytes_per_second", METRIC_GAUGE,
	"process,resource=gpu|cgroup|host,gpu,UUID,bound=expected|low|high",
	"Growth of the call sites that are proven to grow; 0: none is. No sample: too early to "
	"tell.", "last pass", put_growths,
};

static void put_oom(struct exposition *out, const char *process,
		    const struct live_resource *resource, const struct gpu_label *label)
{
	static const char *const bounds[] = { [LIVE_EXPECTED] = "expected",
					      [LIVE_SOONEST] = "soonest",
					      [LIVE_LATEST] = "latest" };

	for (unsigned i = 0; i < 3; i++)
		put_number(out, resource->oom_s[i], process, resources[resource->kind],
			   gpu_or_none(label), uuid_or_none(label), bounds[i]);
}
static void put_ooms(struct exposition *out) { put_resources(out, put_oom); }
const struct exposed metric_oom = {
	"cuflight_time_to_oom_seconds", METRIC_GAUGE,
	"process,resource=gpu|cgroup|host,gpu,UUID,bound=expected|soonest|latest",
	"Headroom over proven growth, with a 95 % interval; +Inf: nothing is proven to grow. No "
	"sample: too early to tell.", "last pass", put_ooms,
};

/* ---- extremes ---- */

static void put_extremes(struct exposition *out, const struct watch_process *process,
			 const struct pass_device *device, const struct gpu_label *label,
			 bool is_free)
{
	if (!device->has_recent)
		return;
	put_bytes(out, is_free ? device->minute.free_bytes : device->minute.peak_bytes,
		  process->name, label->gpu, label->uuid, "1m");
	put_bytes(out, is_free ? device->hour.free_bytes : device->hour.peak_bytes,
		  process->name, label->gpu, label->uuid, "1h");
}
static void put_peaks(struct exposition *out) { put_passes(out, put_extremes, false); }
const struct exposed metric_interval_peak = {
	"cuflight_gpu_memory_interval_peak_bytes", METRIC_GAUGE, "process,gpu,UUID,window=1m|1h",
	"Most that the process held within the last minute or hour, however short that was.",
	"last pass", put_peaks,
};
static void put_lows(struct exposition *out) { put_passes(out, put_extremes, true); }
const struct exposed metric_interval_free = {
	"cuflight_gpu_memory_interval_free_bytes", METRIC_GAUGE, "process,gpu,UUID,window=1m|1h",
	"Least that was free within the last minute or hour.", "last pass", put_lows,
};
