/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every metric, in the order of the exposition. A new one is a row here and a descriptor in the
 * file of its subject: metrics_process.c, metrics_host.c, metrics_device.c,
 * metrics_forecast.c, metrics_site.c.
 */
#pragma once

#include "analysis/view/live/metrics.h"

#define METRICS(METRIC) \
	METRIC(up) \
	METRIC(process_running) \
	METRIC(process_start) \
	METRIC(last_event) \
	METRIC(process_info) \
	METRIC(gpu_total) \
	METRIC(gpu_free) \
	METRIC(gpu_free_age) \
	METRIC(gpu_memory) \
	METRIC(gpu_peak) \
	METRIC(interval_peak) \
	METRIC(interval_free) \
	METRIC(gpu_largest_free) \
	METRIC(headroom) \
	METRIC(framework_allocated) \
	METRIC(framework_reserved) \
	METRIC(allocations) \
	METRIC(frees) \
	METRIC(failures) \
	METRIC(growth) \
	METRIC(oom) \
	METRIC(leak) \
	METRIC(site) \
	METRIC(cause) \
	METRIC(host_live) \
	METRIC(host_resident) \
	METRIC(pinned) \
	METRIC(cgroup_memory) \
	METRIC(cgroup_working) \
	METRIC(cgroup_limit) \
	METRIC(cgroup_pressure) \
	METRIC(lost_events) \
	METRIC(overwritten_events) \
	METRIC(recorder_time) \
	METRIC(analysis_time) \
	METRIC(analysis_duration) \
	METRIC(build)

#define METRIC(name) extern const struct exposed metric_##name;
METRICS(METRIC)
#undef METRIC
