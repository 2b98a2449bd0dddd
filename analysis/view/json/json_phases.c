/* SPDX-License-Identifier: Apache-2.0 */
/* Phases, requests and marks as JSON. */
#include "analysis/view/json/json_parts.h"

/* Memory during a phase: at its begin, its minimum, its peak and its end. */
static void add_stretch(struct json_object *object, const struct fact_stretch *work)
{
	json_add_number(object, "start_bytes", work->start_bytes);
	json_add_number(object, "floor_bytes", work->floor_bytes);
	json_add_number(object, "peak_bytes", work->peak_bytes);
	json_add_number(object, "end_bytes", work->end_bytes);
}

/* A mark has no duration. A request is a phase that repeats and is numbered. */
static const char *sort_of(bool is_mark, bool is_request)
{
	if (is_mark)
		return "mark";
	if (is_request)
		return "request";
	return "phase";
}

/* One phase. "why" is set for those that were inferred and not marked by the program. */
static struct json_object *json_phase(const struct facts *facts, const struct fact_phase *phase)
{
	struct json_object *object = json_object_new_object();
	json_add_text(object, "name", phase->name);
	json_add_text(object, "sort", sort_of(phase->is_mark, phase->is_request));
	json_add_text(object, "source", phase_source_names[phase->source]);
	json_add_basis(object, phase->basis);
	json_add_word(object, "why", phase->why);
	json_add(object, "pid", json_pid(facts, phase->process));
	json_add_positive(object, "tid", phase->tid);
	json_add_number(object, "depth", phase->depth);
	json_add_number(object, "begin_ns", phase->begin_ns);
	json_add_number(object, "end_ns", phase->end_ns);
	json_add_number(object, "request_id", phase->request_id);
	add_stretch(object, &phase->work);
	return object;
}

void stream_phases(struct json_stream *stream, const struct facts *facts)
{
	json_stream_array(stream, "phases");
	for (size_t p = 0; p < facts->process_count; p++)
		for (size_t i = 0;
		     json_stream_wants(stream, i, facts->processes[p].phase_count); i++)
			json_stream_value(stream, NULL,
					  json_phase(facts, &facts->processes[p].phases[i]));
	json_stream_close(stream);
}

/* Phases by name. Times and bytes are sums or extremes over all of one name. */
static struct json_object *json_groups(const struct fact_process *process)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < process->phase_group_count; i++) {
		const struct fact_phase_group *group = &process->phase_groups[i];
		struct json_object *row = json_object_new_object();
		json_add_text(row, "name", group->name);
		json_add_text(row, "sort", sort_of(group->is_mark, group->is_request));
		json_add_text(row, "source", phase_source_names[group->source]);
		json_add_number(row, "count", group->count);
		json_add_number(row, "open", group->open);
		json_add_number(row, "total_ns", group->total_ns);
		json_add_number(row, "longest_ns", group->longest_ns);
		json_add_number(row, "peak_bytes", group->peak_bytes);
		json_add_number(row, "rise_bytes", group->rise_bytes);
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * "floor_slope_bytes" is what stays allocated after each request. It is computed from minima,
 * because peaks depend on which requests overlap.
 */
struct json_object *json_requests(const struct fact_process *process)
{
	const struct fact_requests *requests = &process->requests;
	struct json_object *object = json_object_new_object(), *interval = json_object_new_array();
	json_add_number(object, "pid", process->pid);
	json_add_number(object, "count", requests->count);
	json_add_number(object, "open", requests->open);
	json_add_word(object, "name", requests->name);
	json_add_basis(object, requests->basis);
	json_add_word(object, "why", requests->why);
	json_add_text(object, "layer", process->work_layer);
	json_add_number(object, "concurrency_max", requests->concurrency_max);
	json_add_number(object, "median_peak_bytes", requests->median_peak_bytes);
	json_add_number(object, "largest_peak_bytes", requests->largest_peak_bytes);
	json_add_number(object, "largest_id", requests->largest_id);
	json_add_number(object, "largest_ns", requests->largest_ns);
	json_add_double(object, "floor_slope_bytes", requests->floor_slope_bytes);
	json_object_array_add(interval, json_double(requests->floor_low_bytes));
	json_object_array_add(interval, json_double(requests->floor_high_bytes));
	json_add(object, "floor_interval", interval);
	json_add_double(object, "per_s", requests->per_s);
	json_add(object, "phases", json_groups(process));
	json_add_number(object, "phases_seen", process->phases_seen);
	json_add_number(object, "phases_left_out", process->phases_left_out);
	return object;
}
