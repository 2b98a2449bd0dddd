/* SPDX-License-Identifier: Apache-2.0 */
/* Phases, requests and marks of a process. */
#include "analysis/view/json/shapes.h"

static const char *const sorts[] = { "phase", "request", "mark" };
static const struct words phase_sort_words = WORDS("phase_sort", sorts);
const struct words phase_source_words = WORDS("phase_source", phase_source_names,
	.meaning = "cuflight.h; NVTX; what the memory did");

/* A mark has no duration. A request is a phase that repeats and is numbered. */
static struct json_object *sort_of(bool is_mark, bool is_request)
{
	if (is_mark)
		return json_text("mark");
	return json_text(is_request ? "request" : "phase");
}

static struct json_object *phase_sort(const struct fields *fields, const void *object)
{
	const struct fact_phase *phase = object;

	return sort_of(phase->is_mark, phase->is_request);
}

static struct json_object *group_sort(const struct fields *fields, const void *object)
{
	const struct fact_phase_group *group = object;

	return sort_of(group->is_mark, group->is_request);
}

#define OF struct fact_phase
static const struct field phase_fields[] = {
	{ "name", TEXT(name) },
	{ "sort", .words = &phase_sort_words, VALUE(NAME, phase_sort) },
	{ "source", NAME(source, phase_source_words) },
	{ "basis", BASIS(basis) },
	{ "why", WORD(why), .meaning = "how it was inferred" },
	{ "pid", PROCESS(process) },
	{ "tid", POSITIVE(tid) },
	{ "depth", COUNT(depth) },
	{ "begin_ns", COUNT(begin_ns) },
	{ "end_ns", NUMBER(end_ns) },
	{ "request_id", NUMBER(request_id) },
	{ "start_bytes", NUMBER(work.start_bytes) },
	{ "floor_bytes", NUMBER(work.floor_bytes) },
	{ "peak_bytes", NUMBER(work.peak_bytes) },
	{ "end_bytes", NUMBER(work.end_bytes) },
};
const struct shape phase_shape = SHAPE("phase", phase_fields, .meaning = "A stretch of a process's "
	"work. Bytes are live ones of the layer in requests.layer; tid is null for those of the "
	"whole process; end_ns is null while open.");
#undef OF

#define OF struct fact_phase_group
static const struct field group_fields[] = {
	{ "name", TEXT(name) },
	{ "sort", .words = &phase_sort_words, VALUE(NAME, group_sort) },
	{ "source", NAME(source, phase_source_words) },
	{ "count", COUNT(count) },
	{ "open", COUNT(open) },
	{ "total_ns", COUNT(total_ns) },
	{ "longest_ns", COUNT(longest_ns) },
	{ "peak_bytes", NUMBER(peak_bytes) },
	{ "rise_bytes", NUMBER(rise_bytes) },
};
static const struct shape group_shape = SHAPE("phase_group", group_fields,
	.meaning = "All phases of one name: rise_bytes is the largest peak over its own start.");
#undef OF

/* The slope is that of minima, because peaks depend on which requests overlap. */
#define OF struct fact_process
static const struct field requests_fields[] = {
	{ "pid", COUNT(pid) },
	{ "count", COUNT(requests.count) },
	{ "open", COUNT(requests.open) },
	{ "name", WORD(requests.name) },
	{ "basis", BASIS(requests.basis) },
	{ "why", WORD(requests.why) },
	{ "layer", TEXT(work_layer), LIMITS("enum": ["device", "framework"]) },
	{ "concurrency_max", NUMBER(requests.concurrency_max) },
	{ "median_peak_bytes", NUMBER(requests.median_peak_bytes) },
	{ "largest_peak_bytes", NUMBER(requests.largest_peak_bytes) },
	{ "largest_id", NUMBER(requests.largest_id) },
	{ "largest_ns", NUMBER(requests.largest_ns) },
	{ "floor_slope_bytes", REAL(requests.floor_slope_bytes) },
	{ "floor_interval",
	  INTERVAL(REALS, true, requests.floor_low_bytes, requests.floor_high_bytes) },
	{ "per_s", REAL(requests.per_s) },
	{ "phases", LIST(phase_groups, phase_group_count, group_shape),
	  .meaning = "by name, most time first" },
	{ "phases_seen", COUNT(phases_seen) },
	{ "phases_left_out", COUNT(phases_left_out),
	  .meaning = "not recorded: too fast, or nested too deep" },
};
const struct shape requests_shape = SHAPE("requests", requests_fields, .meaning = "Units of a "
	"process's work: marked by it, else the ups and downs of its memory (basis inferred). "
	"Peaks are over what was live at the begin; floor_slope_bytes is what stays after "
	"each, with its 95 % interval.");
#undef OF
