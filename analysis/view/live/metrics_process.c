/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of processes and of their recordings. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "analysis/base/clock.h"
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"

static double seconds(uint64_t ns) { return (double)ns / 1e9; }
static double seconds_or_none(uint64_t ns)
{
	return ns == CUF_UNKNOWN ? __builtin_nan("") : seconds(ns);
}

static void put_up(struct exposition *out)
{
	const struct watch *watch = out->watch;
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		put_bytes(out, 1, watch_short_path(watch, process->path));
	for (size_t i = 0; i < watch->unreadable_count; i++) {
		out->path = watch->unreadable[i].path;
		put_bytes(out, 0, watch_short_path(watch, out->path));
	}
}
const struct exposed metric_up = {
	"cuflight_up", METRIC_GAUGE, "recording",
	"1: the recording can be read; 0: it cannot.", "scrape", put_up,
};

static void put_running(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		if (!watch_runs(process) || process->levels.life == LIFE_RUNS)
			put_bytes(out, watch_runs(process), process->name);
}
const struct exposed metric_process_running = {
	"cuflight_process_running", METRIC_GAUGE, "process",
	"1: the process runs; 0: it ended within the last five minutes. No sample: it cannot be "
	"seen from here whether it runs.", "scrape", put_running,
};

static void put_start(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		put_number(out, seconds_or_none(process->levels.start_ns), process->name);
}
const struct exposed metric_process_start = {
	"cuflight_process_start_time_seconds", METRIC_GAUGE, "process",
	"When recording began, in seconds since the epoch.", "scrape", put_start,
};

static void put_last_event(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		put_number(out, seconds_or_none(process->levels.last_event_ns), process->name);
}
const struct exposed metric_last_event = {
	"cuflight_last_event_timestamp_seconds", METRIC_GAUGE, "process",
	"When the process last allocated or freed, to a sample, in seconds since the epoch. An "
	"idle process writes nothing.", "scrape", put_last_event,
};

static const char *text_or_none(const char *text) { return *text ? text : NULL; }

static void put_info(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		const struct identity *identity = &process->identity;
		const struct pass *pass = process->pass;
		uint64_t driver = process->levels.header.driver_version;
		char pid[16], version[16] = "";

		snprintf(pid, sizeof pid, "%u", identity->pid);
		if (driver)
			snprintf(version, sizeof version, "%u.%u", (unsigned)(driver / 1000),
				 (unsigned)(driver % 1000 / 10));
		put_bytes(out, 1, process->name, watch_short_path(out->watch, process->path), pid,
			  text_or_none(identity->host), pass ? text_or_none(pass->model) : NULL,
			  pass ? text_or_none(pass->framework) : NULL,
			  pass ? text_or_none(pass->version) : NULL, text_or_none(version),
			  text_or_none(identity->rank));
	}
}
const struct exposed metric_process_info = {
	"cuflight_process_info", METRIC_GAUGE,
	"process,recording,pid,host,model,framework,version,driver,rank",
	"What is known of the process; 1.", "scrape, last pass", put_info,
};

/* ---- what the recording lacks ---- */

static void put_lost(struct exposition *out)
{
	static const char *const tables[CUF_LOST_MAX] = {
		[CUF_LOST_THREADS] = "threads", [CUF_LOST_RING] = "ring",
		[CUF_LOST_HOST_RING] = "host_ring", [CUF_LOST_LEDGER] = "ledger",
		[CUF_LOST_HOST_LEDGER] = "host_ledger", [CUF_LOST_STACKS] = "stacks",
		[CUF_LOST_META] = "meta", [CUF_LOST_INCIDENTS] = "incidents",
		[CUF_LOST_DEVICES] = "devices", [CUF_LOST_SWITCH] = "switch",
		[CUF_LOST_NESTED] = "nested", [CUF_LOST_FRAMEWORK_RING] = "framework_ring",
		[CUF_LOST_CODES] = "codes", [CUF_LOST_TASKS] = "tasks",
		[CUF_LOST_SMALL] = "small",
	};
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		struct watch_counters counters = watch_counters_of(out->watch, process->name);

		for (unsigned i = 0; i < CUF_LOST_MAX; i++)
			if (tables[i])
				put_bytes(out, counters.lost[i], process->name, tables[i]);
	}
}
const struct exposed metric_lost_events = {
	"cuflight_recorder_lost_events_total", METRIC_COUNTER, "process,table",
	"Events and records for which a table of the recording had no room.", "scrape", put_lost,
};

static void put_overwritten(struct exposition *out)
{
	static const char *const rings[] = { "device", "host", "framework" };
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		struct watch_counters counters = watch_counters_of(out->watch, process->name);

		for (unsigned i = 0; i < sizeof rings / sizeof *rings; i++)
			put_bytes(out, counters.overwritten[i], process->name, rings[i]);
	}
}
const struct exposed metric_overwritten_events = {
	"cuflight_recorder_overwritten_events_total", METRIC_COUNTER,
	"process,ring=device|host|framework",
	"Events that were counted and then overwritten by newer ones.", "scrape", put_overwritten,
};

static void put_recorder_time(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		put_number(out, seconds(watch_counters_of(out->watch, process->name).recorder_ns),
			   process->name);
}
const struct exposed metric_recorder_time = {
	"cuflight_recorder_seconds_total", METRIC_COUNTER, "process",
	"Time that recording device events cost the process, estimated from one in 16.", "scrape",
	put_recorder_time,
};

/* ---- what we know of it ---- */

static void put_analysis_time(struct exposition *out)
{
	double now_s = seconds(clock_ns(CLOCK_REALTIME));
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		uint64_t since_ns = process->pass_ns ? process->pass_ns : process->seen_ns;

		if (watch_runs(process))
			put_number(out, now_s - seconds(watch_now_ns() - since_ns), process->name);
	}
}
const struct exposed metric_analysis_time = {
	"cuflight_analysis_timestamp_seconds", METRIC_GAUGE, "process",
	"When the last pass over the recording was made, in seconds since the epoch; before the "
	"first one, when the recording was found.", "last pass", put_analysis_time,
};

static void put_analysis_duration(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		if (watch_runs(process) && process->pass)
			put_number(out, seconds(process->pass->cost_ns), process->name);
}
const struct exposed metric_analysis_duration = {
	"cuflight_analysis_duration_seconds", METRIC_GAUGE, "process",
	"Processor time of the last pass over the recording.", "last pass", put_analysis_duration,
};

static void put_build(struct exposition *out) { put_bytes(out, 1, CUFLIGHT_VERSION); }
const struct exposed metric_build = {
	"cuflight_build_info", METRIC_GAUGE, "version", "Version of cuflight; 1.", "cuflight",
	put_build,
};
