/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole document cuflight.report/1. Keys are a contract: they are added, never changed
 * or removed.
 */
#include "analysis/view/json/report_json.h"

#include "analysis/base/numbers.h"
#include "analysis/facts/focus.h"
#include "analysis/view/json/shapes.h"

static const void *in_focus(const struct fields *fields, const void *object)
{
	return focus_process(fields->facts);
}

/* The recording itself. Its end and its pid are those of the process that the report is about. */
#define OF struct fact_process
static const struct field capture_fields[] = {
	{ "path", .type = FIELD_TEXT, IN(struct facts, path) },
	{ "end_state", .base = in_focus, NAME(end, end_words) },
	{ "end_status", .base = in_focus, NUMBER(end_status) },
	{ "processes", .type = FIELD_NUMBER, IN(struct facts, process_count),
	  LIMITS("minimum": 1) },
	{ "pid", .base = in_focus, COUNT(pid) },
#undef OF
#define OF struct facts
	{ "events_recorded", NUMBER(events_recorded) },
	{ "events_overwritten", NUMBER(events_overwritten) },
	{ "events_lost", NUMBER(events_lost) },
	{ "complete", FLAG(coverage.complete) },
};
static const struct shape capture_shape = SHAPE(NULL, capture_fields);
#undef OF

#define OF struct fact_process_group
static const struct field run_fields[] = {
	{ "first_failed", PROCESS(leader) },
	{ "failed", COUNT(failed_count) },
	{ "ended_by_it", COUNT(ended_count) },
	{ "peers", COUNT(peer_count) },
	{ "median_held_bytes", NUMBER(median_bytes) },
	{ "outlier", PROCESS(outlier) },
};
static const struct shape run_shape = SHAPE(NULL, run_fields, .meaning = "Several processes as "
	"one: whose failure came first (a pid), how many failed by themselves, how many were ended "
	"by it, and the peer that holds clearly more than the others.");
#undef OF

#define OF struct fact_loss
static const struct field loss_fields[] = {
	{ "what", TEXT(what) },
	{ "count", NUMBER(count) },
	{ "pid", PROCESS(process) },
};
static const struct shape loss_shape = SHAPE(NULL, loss_fields);
#undef OF

#define OF struct fact_text
static const struct field blind_fields[] = {
	{ "text", TEXT(text) },
	{ "pid", PROCESS(process) },
};
static const struct shape blind_shape = SHAPE(NULL, blind_fields);
#undef OF

/*
 * Why stack walks ended. "end" is good; a high count of any other reason means that call sites
 * are truncated.
 */
static struct json_object *stack_stops(const struct fields *fields, const void *object)
{
	static const char *const names[CUF_STOP_MAX] = { "end", "depth", "no_rule", "unsupported",
		"bounds", "signal" };
	const struct fact_coverage *coverage = object;
	struct json_object *stops = json_object_new_object();

	for (size_t i = 0; i < CUF_STOP_MAX; i++)
		if (names[i])
			json_add_number(stops, names[i], coverage->stack_stops[i]);
	return stops;
}

/*
 * What the recording lacks. A reader must not take an absence from this document for an
 * absence in the program while "complete" is false.
 */
#define OF struct fact_coverage
static const struct field coverage_fields[] = {
	{ "hooked", TEXTS(hooked, hooked_count), COUNTED },
	{ "unhooked", TEXTS(unhooked, unhooked_count), COUNTED },
	{ "static_cudart", TEXTS(static_cudart, static_cudart_count), COUNTED },
	{ "lost", LIST(lost, lost_count, loss_shape), LONG },
	{ "blind", LIST(blind, blind_count, blind_shape), COUNTED },
	{ "complete", FLAG(complete) },
	{ "stack_stops", VALUE(ANY, stack_stops), LIMITS("type": "object",
	  "additionalProperties": {"type": ["integer", "null"], "minimum": 0}) },
	{ "unknown_frees", NUMBER(unknown_frees) },
	{ "replaced", NUMBER(replaced) },
	{ "undone_frees", NUMBER(undone_frees) },
	{ "recorder_ns", NUMBER(recorder_ns) },
};
static const struct shape coverage_shape = SHAPE("coverage", coverage_fields);
#undef OF

static struct json_object *generator(const struct fields *fields, const void *object)
{
	return json_text("cuflight " CUFLIGHT_VERSION);
}

/* The last ones have the failure that ended the process. */
static size_t write_incidents(struct fields *fields, const struct field *field, const void *object)
{
	const struct facts *facts = object;
	size_t all = facts->incident_count, count = least_of(all, fields->stream->rows_max);

	for (size_t i = all - count; fields_wants(fields, field, i - (all - count), count); i++)
		fields_row(fields, NULL, field->shape, &facts->incidents[i]);
	return all;
}

static size_t write_phases(struct fields *fields, const struct field *field, const void *object)
{
	const struct facts *facts = object;

	for (size_t p = 0; p < facts->process_count; p++) {
		const struct fact_process *process = &facts->processes[p];
		for (size_t i = 0; fields_wants(fields, field, i, process->phase_count); i++)
			fields_row(fields, NULL, field->shape, &process->phases[i]);
	}
	return 0;
}

static const void *focus_fragmentation(const struct fields *fields, const void *object)
{
	const struct fact_device *device = focus_device(fields->facts);

	return device ? &device->fragmentation : NULL;
}

#define OF struct facts
static const struct field report_fields[] = {
	{ "generator", VALUE(TEXT, generator) },
	{ "capture", PART(capture_shape) },
	{ "cause", POINTER(cause, cause_shape), LATER },
	{ "also", POINTER(also, site_shape), LATER, "one of leaks: the largest finding that is "
	  "about other memory than the cause; null: there is none" },
	{ "judgement", POINTER(judgement, judgement_shape), LATER },
	{ "run", OBJECT(group, run_shape) },
	{ "what_if", LIST(what_ifs.rows, what_ifs.count, what_if_shape), LATER, "settings under "
	  "which the fatal request was played again (cuflight what-if has all of them); empty: "
	  "none was" },
	{ "processes", LIST(processes, process_count, process_shape), LONG,
	  LIMITS("minItems": 1) },
	{ "devices", LIST(devices, device_count, device_shape), LONG },
	{ "incidents", ROWS(incident_shape, write_incidents), COUNTED },
	{ "phases", ROWS(phase_shape, write_phases), LONG, "what processes marked of their work "
	  "(cuflight.h, NVTX) and what was inferred, by begin; marked ones cut to the longest, "
	  "requests.phases counts all" },
	{ "requests", .base = in_focus, PART(requests_shape) },
	{ "leaks", LIST(leaks, leak_count, site_shape), LONG },
	{ "growth", LIST(growth, growth_count, site_shape), LONG },
	/* these two are those of the device and the process in focus; all of them are above */
	{ "fragmentation", FOUND(fragmentation_shape, focus_fragmentation) },
	{ "host", .base = in_focus, .type = FIELD_OBJECT, .shape = &host_shape,
	  IN(struct fact_process, host) },
	{ "coverage", OBJECT(coverage, coverage_shape) },
};
const struct shape report_shape = SHAPE("report", report_fields, .meaning = "What `cuflight report "
	"--json` prints. Keys are only ever added. Bytes, counts and nanoseconds (UNIX epoch) are "
	"integers, addresses hexadecimal strings; what is not known is null, never 0.");
#undef OF

bool report_json(FILE *out, const struct facts *facts, struct frames *frames)
{
	return report_json_rows(out, facts, frames, JSON_ROWS_MAX);
}

bool report_json_rows(FILE *out, const struct facts *facts, struct frames *frames, size_t rows_max)
{
	struct json_stream stream;
	struct fields fields = { .stream = &stream, .facts = facts, .frames = frames };

	json_stream_begin(&stream, out, report_json_limit(facts));
	stream.rows_max = rows_max;
	return fields_document(&fields, &report_shape, facts) || ferror(out);
}

/* Recordings repeat little. One that was made to repeat a name in every frame would fill a disk. */
uint64_t report_json_limit(const struct facts *facts)
{
	const uint64_t least = 64 << 20, times = 64;

	if (facts->recorded_bytes > (UINT64_MAX - least) / times)
		return UINT64_MAX;
	return least + times * facts->recorded_bytes;
}
