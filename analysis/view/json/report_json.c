/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole document cuflight.report/1. Keys are a contract: they are added, never changed
 * or removed.
 */
#include "analysis/view/json/report_json.h"

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
	json_add(object, "host", json_host(frames, &process->host));
	json_add(object, "requests", json_requests(process));
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

static struct json_object *json_texts(const char *const *texts, size_t count)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		json_object_array_add(array, json_text(texts[i]));
	return array;
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
static struct json_object *json_coverage(const struct facts *facts)
{
	const struct fact_coverage *coverage = &facts->coverage;
	struct json_object *object = json_object_new_object(), *lost = json_object_new_array(),
		*blind = json_object_new_array();
	for (size_t i = 0; i < coverage->lost_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "what", coverage->lost[i].what);
		json_add_number(row, "count", coverage->lost[i].count);
		json_add(row, "pid", json_pid(facts, coverage->lost[i].process));
		json_object_array_add(lost, row);
	}
	for (size_t i = 0; i < coverage->blind_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "text", coverage->blind[i].text);
		json_add(row, "pid", json_pid(facts, coverage->blind[i].process));
		json_object_array_add(blind, row);
	}
	json_add(object, "hooked", json_texts(coverage->hooked, coverage->hooked_count));
	json_add(object, "unhooked", json_texts(coverage->unhooked, coverage->unhooked_count));
	json_add(object, "static_cudart",
		 json_texts(coverage->static_cudart, coverage->static_cudart_count));
	json_add(object, "lost", lost);
	json_add(object, "blind", blind);
	json_add_bool(object, "complete", coverage->complete);
	json_add(object, "stack_stops", json_stack_stops(coverage));
	json_add_number(object, "unknown_frees", coverage->unknown_frees);
	json_add_number(object, "replaced", coverage->replaced);
	json_add_number(object, "undone_frees", coverage->undone_frees);
	json_add_number(object, "recorder_ns", coverage->recorder_ns);
	return object;
}

/* An array of `count` values. `value` is an expression of i and is evaluated for each. */
#define ADD_ARRAY(document, key, count, value) do { \
	struct json_object *array = json_object_new_array(); \
	for (size_t i = 0; i < (count); i++) \
		json_object_array_add(array, value); \
	json_add(document, key, array); \
} while (0)

void report_json(FILE *out, const struct facts *facts, struct frames *frames)
{
	struct json_object *document = json_object_new_object();
	const struct fact_device *device = focus_device(facts);
	struct json_object *fragmentation = NULL;
	if (device)
		fragmentation = json_fragmentation(facts, frames, device);
	json_add_text(document, "schema", "cuflight.report/1");
	json_add_text(document, "generator", "cuflight " CUFLIGHT_VERSION);
	json_add(document, "capture", json_capture(facts));
	json_add(document, "cause", json_cause(facts, frames, facts->cause));
	json_add(document, "run", json_crowd(facts));
	ADD_ARRAY(document, "processes", facts->process_count,
		  json_process(facts, frames, &facts->processes[i]));
	ADD_ARRAY(document, "devices", facts->device_count,
		  json_device(facts, frames, &facts->devices[i]));
	ADD_ARRAY(document, "incidents", facts->incident_count,
		  json_incident(facts, frames, &facts->incidents[i]));
	json_add(document, "phases", json_phases(facts));
	json_add(document, "requests", json_requests(&facts->processes[facts->focus]));
	ADD_ARRAY(document, "leaks", facts->leak_count, json_site(facts, frames, &facts->leaks[i]));
	ADD_ARRAY(document, "growth", facts->growth_count,
		  json_site(facts, frames, &facts->growth[i]));
	/* these two are those of the device and the process in focus; all of them are above */
	json_add(document, "fragmentation", fragmentation);
	json_add(document, "host", json_host(frames, &facts->processes[facts->focus].host));
	json_add(document, "coverage", json_coverage(facts));
	json_print(document, out);
}
