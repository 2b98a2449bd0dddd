/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole document cuflight.report/1. Keys are a contract: they are added, never changed
 * or removed.
 */
#include "analysis/view/json/report_json.h"

#include "analysis/base/numbers.h"
#include "analysis/view/focus.h"
#include "analysis/view/json/json_parts.h"

/*
 * The recording itself. Its end and its pid are those of the process that the report is about.
 */
static struct json_object *json_capture(const struct facts *facts)
{
	const struct fact_process *focus = &facts->processes[facts->focus];
	struct json_object *object = json_object_new_object();
	json_add_text(object, "path", facts->path);
	json_add_text(object, "end_state", end_names[focus->end]);
	json_add_number(object, "end_status", focus->end_status);
	json_add_number(object, "processes", facts->process_count);
	json_add_number(object, "pid", focus->pid);
	json_add_number(object, "events_recorded", facts->events_recorded);
	json_add_number(object, "events_overwritten", facts->events_overwritten);
	json_add_number(object, "events_lost", facts->events_lost);
	json_add_bool(object, "complete", facts->coverage.complete);
	return object;
}

/* NULL: a recorder newer than this program wrote a mode that it does not have. */
static const char *host_mode_name(uint32_t mode)
{
	static const char *const modes[] = { "off", "sampled", "full" };
	if (mode > CUF_HOST_FULL)
		return NULL;
	return modes[mode];
}

/* All that is known of one process. "complete" is false when its file is cut. */
static struct json_object *json_process(const struct facts *facts, struct frames *frames,
					const struct fact_process *process)
{
	struct json_object *object = json_object_new_object();
	json_add_number(object, "pid", process->pid);
	json_add_number(object, "ppid", process->ppid);
	json_add(object, "parent", json_pid(facts, process->parent));
	json_add_text(object, "path", process->path);
	json_add_text(object, "executable", process->exe);
	json_add_text(object, "command_line", process->cmdline);
	json_add_text(object, "hostname", process->hostname);
	json_add_number(object, "start_ns", process->start_ns);
	json_add_number(object, "end_ns", process->end_ns);
	json_add_text(object, "end_state", end_names[process->end]);
	json_add_number(object, "end_status", process->end_status);
	json_add_word(object, "end_basis", basis_names[process->end_basis]);
	json_add_word(object, "end_why", process->end_why);
	json_add_bool(object, "complete", process->complete);
	json_add_bool(object, "switched_off", process->switched_off);
	json_add_positive(object, "driver_version", process->driver_version);
	json_add_number(object, "first_cuda_ns", process->first_cuda_ns);
	json_add_text(object, "host_mode", host_mode_name(process->host_mode));
	json_add_number(object, "sample_mean_bytes", process->sample_mean_bytes);
	json_add_number(object, "stack_depth", process->stack_depth);
	json_add_number(object, "events_recorded", process->events_recorded);
	json_add_number(object, "events_overwritten", process->events_overwritten);
	json_add_number(object, "events_lost", process->events_lost);
	json_add_positive(object, "fatal_incident", process->fatal_incident);
	json_add_text(object, "rank", process->rank);
	json_add(object, "ended_by", json_pid(facts, process->ended_by));
	json_add_number(object, "held_bytes", process->held_bytes);
	json_add_number(object, "device_peak_bytes", process->device_peak_bytes);
	json_add(object, "host", json_host(frames, &process->host));
	json_add(object, "requests", json_requests(process));
	json_add(object, "recent", json_recent(facts, process));
	return object;
}

/* The run as a whole: who failed first, whom that ended, and who held more than the others. */
static struct json_object *json_crowd(const struct facts *facts)
{
	const struct fact_process_group *group = &facts->group;
	struct json_object *object = json_object_new_object();
	json_add(object, "first_failed", json_pid(facts, group->leader));
	json_add_number(object, "failed", group->failed_count);
	json_add_number(object, "ended_by_it", group->ended_count);
	json_add_number(object, "peers", group->peer_count);
	json_add_number(object, "median_held_bytes", group->median_bytes);
	json_add(object, "outlier", json_pid(facts, group->outlier));
	return object;
}

/* The texts, and in another key how many are left out. */
static void stream_texts(struct json_stream *stream, const char *key, const char *key_left_out,
			 const char *const *texts, size_t count)
{
	json_stream_array(stream, key);
	for (size_t i = 0; json_stream_wants(stream, i, count); i++)
		json_stream_value(stream, NULL, json_text(texts[i]));
	json_stream_close(stream);
	json_stream_left_out(stream, key_left_out, count);
}

static void stream_lost(struct json_stream *stream, const struct facts *facts)
{
	const struct fact_coverage *coverage = &facts->coverage;
	json_stream_array(stream, "lost");
	for (size_t i = 0; json_stream_wants(stream, i, coverage->lost_count); i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "what", coverage->lost[i].what);
		json_add_number(row, "count", coverage->lost[i].count);
		json_add(row, "pid", json_pid(facts, coverage->lost[i].process));
		json_stream_value(stream, NULL, row);
	}
	json_stream_close(stream);
}

static void stream_blind(struct json_stream *stream, const struct facts *facts)
{
	const struct fact_coverage *coverage = &facts->coverage;
	json_stream_array(stream, "blind");
	for (size_t i = 0; json_stream_wants(stream, i, coverage->blind_count); i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "text", coverage->blind[i].text);
		json_add(row, "pid", json_pid(facts, coverage->blind[i].process));
		json_stream_value(stream, NULL, row);
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "blind_left_out", coverage->blind_count);
}

/*
 * Why stack walks ended. "end" is good; a high count of any other reason means that call sites
 * are truncated.
 */
static struct json_object *json_stack_stops(const struct fact_coverage *coverage)
{
	static const char *const names[CUF_STOP_MAX] = { "end", "depth", "no_rule", "unsupported",
		"bounds", "signal" };
	struct json_object *object = json_object_new_object();
	for (size_t i = 0; i < CUF_STOP_MAX; i++)
		if (names[i])
			json_add_number(object, names[i], coverage->stack_stops[i]);
	return object;
}

/*
 * What the recording lacks. A reader must not take an absence from this document for an
 * absence in the program while "complete" is false.
 */
static void stream_coverage(struct json_stream *stream, const struct facts *facts)
{
	const struct fact_coverage *coverage = &facts->coverage;
	json_stream_object(stream, "coverage");
	stream_texts(stream, "hooked", "hooked_left_out", coverage->hooked, coverage->hooked_count);
	stream_texts(stream, "unhooked", "unhooked_left_out", coverage->unhooked,
		     coverage->unhooked_count);
	stream_texts(stream, "static_cudart", "static_cudart_left_out", coverage->static_cudart,
		     coverage->static_cudart_count);
	stream_lost(stream, facts);
	stream_blind(stream, facts);
	json_stream_value(stream, "complete", json_object_new_boolean(coverage->complete));
	json_stream_value(stream, "stack_stops", json_stack_stops(coverage));
	json_stream_value(stream, "unknown_frees", json_number(coverage->unknown_frees));
	json_stream_value(stream, "replaced", json_number(coverage->replaced));
	json_stream_value(stream, "undone_frees", json_number(coverage->undone_frees));
	json_stream_value(stream, "recorder_ns", json_number(coverage->recorder_ns));
	json_stream_close(stream);
}

/* An array of `count` values. `value` is an expression of i and is evaluated for each. */
#define STREAM_ARRAY(stream, key, count, value) do { \
	json_stream_array(stream, key); \
	for (size_t i = 0; json_stream_wants(stream, i, count); i++) \
		json_stream_value(stream, NULL, value); \
	json_stream_close(stream); \
} while (0)

/* What can have many rows is written row by row. */
static void stream_lists(struct json_stream *stream, const struct facts *facts,
			 struct frames *frames)
{
	size_t all = facts->incident_count, incidents = least_of(all, stream->rows_max);
	STREAM_ARRAY(stream, "processes", facts->process_count,
		     json_process(facts, frames, &facts->processes[i]));
	json_stream_array(stream, "devices");
	for (size_t i = 0; json_stream_wants(stream, i, facts->device_count); i++)
		stream_device(stream, facts, frames, &facts->devices[i]);
	json_stream_close(stream);
	/* the last ones have the failure that ended the process */
	STREAM_ARRAY(stream, "incidents", incidents,
		     json_incident(facts, frames,
				   &facts->incidents[all - incidents + i]));
	json_stream_left_out(stream, "incidents_left_out", all);
	stream_phases(stream, facts);
	json_stream_value(stream, "requests", json_requests(&facts->processes[facts->focus]));
	STREAM_ARRAY(stream, "leaks", facts->leak_count,
		     json_site(facts, frames, &facts->leaks[i]));
	STREAM_ARRAY(stream, "growth", facts->growth_count,
		     json_site(facts, frames, &facts->growth[i]));
}

bool report_json(FILE *out, const struct facts *facts, struct frames *frames)
{
	return report_json_rows(out, facts, frames, JSON_ROWS_MAX);
}

bool report_json_rows(FILE *out, const struct facts *facts, struct frames *frames, size_t rows_max)
{
	const struct fact_device *device = focus_device(facts);
	struct json_stream writer, *stream = &writer;

	json_stream_begin(stream, out, report_json_limit(facts));
	stream->rows_max = rows_max;
	json_stream_object(stream, NULL);
	json_stream_value(stream, "schema", json_text("cuflight.report/1"));
	json_stream_value(stream, "generator", json_text("cuflight " CUFLIGHT_VERSION));
	json_stream_value(stream, "capture", json_capture(facts));
	json_stream_value(stream, "cause", json_cause(facts, frames, facts->cause));
	json_stream_value(stream, "also",
			  facts->also ? json_site(facts, frames, facts->also) : NULL);
	json_stream_value(stream, "judgement", json_judgement(facts, frames));
	json_stream_value(stream, "run", json_crowd(facts));
	json_stream_value(stream, "what_if", json_what_ifs(&facts->what_ifs));
	stream_lists(stream, facts, frames);
	/* these two are those of the device and the process in focus; all of them are above */
	if (device)
		stream_fragmentation(stream, facts, frames, device);
	else
		json_stream_value(stream, "fragmentation", NULL);
	json_stream_value(stream, "host",
			  json_host(frames, &facts->processes[facts->focus].host));
	stream_coverage(stream, facts);
	json_stream_close(stream);
	return json_stream_end(stream) || ferror(out);
}

/* Recordings repeat little. One that was made to repeat a name in every frame would fill a disk. */
uint64_t report_json_limit(const struct facts *facts)
{
	const uint64_t least = 64 << 20, times = 64;

	if (facts->recorded_bytes > (UINT64_MAX - least) / times)
		return UINT64_MAX;
	return least + times * facts->recorded_bytes;
}
