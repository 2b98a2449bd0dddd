/* SPDX-License-Identifier: Apache-2.0 */
/* One process: what it is, how it ended, what its recording holds, its memory lately. */
#include "analysis/view/json/shapes.h"

static bool is_of_host(const struct fields *fields, const void *object)
{
	const struct fact_recent *recent = fields->outer;

	return recent->device == FACT_NONE;
}

static bool is_of_device(const struct fields *fields, const void *object)
{
	return !is_of_host(fields, object);
}

#define OF struct fact_extremes
static const struct field extremes_fields[] = {
	{ "peak_bytes", NUMBER(peak_bytes) },
	{ "low_bytes", NUMBER(low_bytes) },
	{ "lowest_free_bytes", NUMBER(free_bytes), .meaning = "Of a device: the least that the "
	  "driver reported as free, or that the peak left, whichever is less." },
	{ "framework_peak_bytes", .is_there = is_of_device, NUMBER(inner_peak_bytes) },
	{ "reserved_peak_bytes", .is_there = is_of_device, NUMBER(outer_peak_bytes) },
	{ "rss_peak_bytes", .is_there = is_of_host, NUMBER(inner_peak_bytes) },
	{ "cgroup_peak_bytes", .is_there = is_of_host, NUMBER(outer_peak_bytes) },
};
static const struct shape extremes_shape = SHAPE("extremes", extremes_fields,
	.meaning = "Of the last minute or hour up to the moment, however short a peak was.");
#undef OF

#define OF struct fact_recent
static const struct field recent_fields[] = {
	{ "device", DEVICE(device) },
	{ "live_bytes", NUMBER(live_bytes) },
	{ "burst_bytes", COUNT(burst_bytes), .meaning = "The largest rise that fell again." },
	{ "minute", OBJECT(minute, extremes_shape) },
	{ "hour", OBJECT(hour, extremes_shape) },
};
static const struct shape recent_shape = SHAPE("recent", recent_fields, .meaning = "A device, or "
	"the host (device null), as this process used it lately; [] of a recording by an older "
	"recorder.");
#undef OF

static const char *const modes[] = { [CUF_HOST_OFF] = "off", [CUF_HOST_SAMPLED] = "sampled",
				     [CUF_HOST_FULL] = "full" };
/* null: a recorder newer than this program wrote a mode that it does not have. */
const struct words host_mode_words = WORDS(NULL, modes);

/* "complete" is false when its file is cut. */
#define OF struct fact_process
static const struct field process_fields[] = {
	{ "pid", COUNT(pid) },
	{ "ppid", NUMBER(ppid) },
	{ "parent", PROCESS(parent) },
	{ "path", TEXT(path) },
	{ "executable", TEXT_OR_NULL(exe) },
	{ "command_line", TEXT_OR_NULL(cmdline) },
	{ "hostname", TEXT_OR_NULL(hostname) },
	{ "start_ns", NUMBER(start_ns) },
	{ "end_ns", NUMBER(end_ns) },
	{ "end_state", NAME(end, end_words) },
	{ "end_status", NUMBER(end_status) },
	{ "end_basis", BASIS(end_basis) },
	{ "end_why", WORD(end_why) },
	{ "complete", FLAG(complete) },
	{ "switched_off", FLAG(switched_off) },
	{ "driver_version", POSITIVE(driver_version) },
	{ "first_cuda_ns", NUMBER(first_cuda_ns) },
	{ "host_mode", .words = &host_mode_words, FIELD(NAME, true, host_mode) },
	{ "sample_mean_bytes", NUMBER(sample_mean_bytes) },
	{ "stack_depth", NUMBER(stack_depth) },
	{ "events_recorded", NUMBER(events_recorded) },
	{ "events_overwritten", NUMBER(events_overwritten) },
	{ "events_lost", NUMBER(events_lost) },
	{ "fatal_incident", POSITIVE(fatal_incident) },
	{ "rank", TEXT_OR_NULL(rank) },
	{ "ended_by", PROCESS(ended_by) },
	{ "held_bytes", NUMBER(held_bytes) },
	{ "device_peak_bytes", NUMBER(device_peak_bytes) },
	{ "host", OBJECT(host, host_shape) },
	{ "requests", PART(requests_shape) },
	{ "recent", LIST(recent, recent_count, recent_shape), LATER },
};
const struct shape process_shape = SHAPE("process", process_fields);
#undef OF
