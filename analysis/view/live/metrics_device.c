/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPU memory. A process that has ended has counters only. */
#include <math.h>
#include <time.h>
#include "analysis/facts/kinds.h"
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"

#define GPU "process,gpu,UUID"

/* Calls put for each device of each process that runs. */
typedef void put_device(struct exposition *out, const struct watch_process *process,
			const struct cuf_device *device, const struct gpu_label *label);

static void put_devices(struct exposition *out, put_device *put, bool also_ended)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		for (size_t i = 0; i < process->levels.device_count; i++) {
			const struct cuf_device *device = &process->levels.devices[i];
			struct gpu_label label = gpu_label(device->ordinal, device->uuid);

			if (also_ended || watch_runs(process))
				put(out, process, device, &label);
		}
	}
}

static const struct pass_device *passed(const struct watch_process *process,
					const struct cuf_device *device)
{
	return watch_device_of(process, device->uuid, device->ordinal);
}

/* ---- levels ---- */

static void put_total(struct exposition *out)
{
	for (size_t i = 0; i < out->device_count; i++) {
		const struct watch_device *device = &out->devices[i];
		struct gpu_label label = gpu_label(device->gpu, device->uuid);

		put_bytes(out, device->total_bytes, label.gpu, label.uuid);
	}
}
const struct exposed metric_gpu_total = {
	"cuflight_gpu_memory_total_bytes", METRIC_GAUGE, "gpu,UUID",
	"Memory of the GPU, as the driver reports it.", "scrape", put_total,
};

static void put_free(struct exposition *out, const struct watch_process *process,
		     const struct cuf_device *device, const struct gpu_label *label)
{
	put_bytes(out, device->free_bytes, process->name, label->gpu, label->uuid);
}
static void put_frees_now(struct exposition *out) { put_devices(out, put_free, false); }
const struct exposed metric_gpu_free = {
	"cuflight_gpu_memory_free_bytes", METRIC_GAUGE, GPU,
	"Free memory of the GPU, as the driver last told the process.", "scrape", put_frees_now,
};

static void put_age(struct exposition *out, const struct watch_process *process,
		    const struct cuf_device *device, const struct gpu_label *label)
{
	uint64_t now_ns = watch_now_ns();

	/* the recorder's clock is ours: CLOCK_MONOTONIC of this boot */
	if (device->free_bytes == CUF_UNKNOWN || device->free_ns == CUF_UNKNOWN ||
	    process->levels.life != LIFE_RUNS)
		return;
	put_number(out, device->free_ns < now_ns ? (double)(now_ns - device->free_ns) / 1e9 : 0,
		   process->name, label->gpu, label->uuid);
}
static void put_ages(struct exposition *out) { put_devices(out, put_age, false); }
const struct exposed metric_gpu_free_age = {
	"cuflight_gpu_memory_free_age_seconds", METRIC_GAUGE, GPU,
	"How old that answer of the driver is.", "scrape", put_ages,
};

static void put_peak(struct exposition *out, const struct watch_process *process,
		     const struct cuf_device *device, const struct gpu_label *label)
{
	put_bytes(out, device->peak_bytes, process->name, label->gpu, label->uuid);
}
static void put_peaks(struct exposition *out) { put_devices(out, put_peak, false); }
const struct exposed metric_gpu_peak = {
	"cuflight_gpu_memory_peak_bytes", METRIC_GAUGE, GPU,
	"Most that the process ever held in live blocks of the GPU.", "scrape", put_peaks,
};

/* ---- who holds it ---- */

static void put_own(struct exposition *out, const struct watch_process *process,
		    const struct cuf_device *device, const struct gpu_label *label)
{
	const struct pass_device *pass = passed(process, device);

	for (unsigned owner = 0; pass && owner < WATCH_OWN_MAX; owner++)
		put_bytes(out, pass->owners[owner], process->name, label->gpu, label->uuid,
			  watch_owner_names[owner]);
}

static void put_owners(struct exposition *out)
{
	put_devices(out, put_own, false);
	for (size_t i = 0; i < out->device_count; i++) {
		const struct watch_device *device = &out->devices[i];
		struct gpu_label label = gpu_label(device->gpu, device->uuid);

		for (unsigned owner = WATCH_OWN_MAX;
		     device->has_pass && owner < WATCH_OWNER_MAX; owner++)
			put_bytes(out, device->rest[owner], NULL, label.gpu, label.uuid,
				  watch_owner_names[owner]);
	}
}
const struct exposed metric_gpu_memory = {
	"cuflight_gpu_memory_bytes", METRIC_GAUGE, GPU ",owner="
	"weights|kv|compute|output|library|communication|graph|other|page_rounding|"
	"pool_slack|framework_slack|context|other_processes|unexplained|free",
	"Who holds the memory of the GPU; the series of one UUID sum to its total. What no "
	"recorded process holds (free, other_processes, unexplained) has no process.", "last pass",
	put_owners,
};

static void put_largest(struct exposition *out, const struct watch_process *process,
			const struct cuf_device *device, const struct gpu_label *label)
{
	static const char *const layers[LAYER_MAX] = {
		[LAYER_DEVICE] = "device", [LAYER_PAGE] = "page", [LAYER_POOL] = "pool",
		[LAYER_VMM] = "vmm", [LAYER_SEGMENT] = "segment",
	};
	const struct pass_device *pass = passed(process, device);

	for (unsigned layer = 0; pass && layer < LAYER_MAX; layer++)
		if (layers[layer])
			put_bytes(out, pass->largest_free[layer], process->name, label->gpu,
				  label->uuid, layers[layer]);
}
static void put_largests(struct exposition *out) { put_devices(out, put_largest, false); }
const struct exposed metric_gpu_largest_free = {
	"cuflight_gpu_largest_free_bytes", METRIC_GAUGE, GPU ",layer=device|page|pool|vmm|segment",
	"Largest free block at that layer; no sample: the layer is absent.", "last pass",
	put_largests,
};

/* ---- frameworks ---- */

static void put_frameworks(struct exposition *out, const struct watch_process *process,
			   const struct pass_device *device, const struct gpu_label *label,
			   bool is_reserved)
{
	for (size_t f = 0; f < device->framework_count; f++)
		put_bytes(out, is_reserved ? device->frameworks[f].reserved_bytes :
					     device->frameworks[f].allocated_bytes,
			  process->name, device->frameworks[f].name, label->gpu, label->uuid);
}
static void put_allocated(struct exposition *out) { put_passes(out, put_frameworks, false); }
const struct exposed metric_framework_allocated = {
	"cuflight_framework_allocated_bytes", METRIC_GAUGE, "process,framework,gpu,UUID",
	"Bytes in blocks that the framework's allocator has given out.", "last pass",
	put_allocated,
};
static void put_reserved(struct exposition *out) { put_passes(out, put_frameworks, true); }
const struct exposed metric_framework_reserved = {
	"cuflight_framework_reserved_bytes", METRIC_GAUGE, "process,framework,gpu,UUID",
	"Bytes that the framework's allocator holds of the driver.", "last pass", put_reserved,
};

/* ---- counters ---- */

static void put_allocation(struct exposition *out, const struct watch_process *process,
			   const struct cuf_device *device, const struct gpu_label *label)
{
	struct watch_counters counters = watch_counters_of(out->watch, process->name);

	put_bytes(out, counters.allocations[device->ordinal], process->name, label->gpu,
		  label->uuid);
}
static void put_allocations(struct exposition *out) { put_devices(out, put_allocation, true); }
const struct exposed metric_allocations = {
	"cuflight_allocations_total", METRIC_COUNTER, GPU,
	"Allocations on the GPU, over all processes that had the name.", "scrape",
	put_allocations,
};

static void put_freed(struct exposition *out, const struct watch_process *process,
		      const struct cuf_device *device, const struct gpu_label *label)
{
	struct watch_counters counters = watch_counters_of(out->watch, process->name);

	put_bytes(out, counters.frees[device->ordinal], process->name, label->gpu, label->uuid);
}
static void put_freeds(struct exposition *out) { put_devices(out, put_freed, true); }
const struct exposed metric_frees = {
	"cuflight_frees_total", METRIC_COUNTER, GPU,
	"Frees on the GPU, over all processes that had the name.", "scrape", put_freeds,
};

/* Failures that are older than our first look are counted before anything is shown: a counter that
 * jumps to them would be an alert of yesterday. */
static bool are_failures_known(const struct watch_process *process)
{
	return process->pass || !process->levels.header.incident_count;
}

static void put_outcomes(struct exposition *out, const char *process, const char *gpu,
			 const char *uuid, const uint64_t counts[OUTCOME_MAX])
{
	for (unsigned outcome = 0; outcome < OUTCOME_UNKNOWN; outcome++)
		put_bytes(out, counts[outcome], process, gpu, uuid, outcome_names[outcome]);
}

static void put_failures(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		struct watch_counters counters = watch_counters_of(out->watch, process->name);

		if (!are_failures_known(process))
			continue;
		for (size_t i = 0; i < process->levels.device_count; i++) {
			const struct cuf_device *device = &process->levels.devices[i];
			struct gpu_label label = gpu_label(device->ordinal, device->uuid);

			put_outcomes(out, process->name, label.gpu, label.uuid,
				     counters.failures[device->ordinal]);
		}
		put_outcomes(out, process->name, NULL, NULL, counters.failures[CUF_DEVICES_MAX]);
	}
}
const struct exposed metric_failures = {
	"cuflight_allocation_failures_total", METRIC_COUNTER,
	GPU ",outcome=fatal|recovered|handled",
	"Requests that failed, with their retries counted once, when it is known how each ended: a "
	"retry served it, the program went on, or it ended. Without gpu: host memory.",
	"last pass", put_failures,
};
