/* SPDX-License-Identifier: Apache-2.0 */
/* Moments, failed requests, and lanes: phases, requests, captures of graphs. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/json/json_parts.h"

enum { LANES_MOST = 8192, LANE_CAPTURE = PHASE_SOURCE_MAX };

int64_t data_time(const struct data *data, uint64_t time_ns)
{
	int64_t since = (int64_t)(time_ns - data->timeline->begin_ns);

	if (!is_known(time_ns))
		return -1;
	return since == -1 ? 0 : since; /* -1 means unknown */
}

struct json_object *data_json_time(const struct data *data, uint64_t time_ns)
{
	if (!is_known(time_ns))
		return NULL;
	return json_object_new_int64(data_time(data, time_ns));
}

/* ---- moments ---- */

static void peak_label(const struct data *data, uint32_t device, char *out, size_t bytes)
{
	const struct fact_process *process = &data->facts->processes[data->facts->focus];

	if (device != FACT_NONE)
		snprintf(out, bytes, "peak of GPU %u", data->facts->devices[device].ordinal);
	else if (data->facts->process_count == 1)
		snprintf(out, bytes, "peak of host memory");
	else
		snprintf(out, bytes, "peak of host memory of pid %u", process->pid);
}

static void moment_label(const struct data *data, const struct timeline_moment *moment, char *out,
			 size_t bytes)
{
	char request[192];

	*out = 0;
	switch (moment->kind) {
	case TIMELINE_INCIDENT:
		if (moment->incident == FACT_NONE)
			break;
		text_requested(&data->facts->incidents[moment->incident], request, sizeof request);
		snprintf(out, bytes, "#%u %s failed", moment->incident + 1, request);
		break;
	case TIMELINE_PEAK: peak_label(data, moment->peak_of, out, bytes); break;
	case TIMELINE_END: snprintf(out, bytes, "end"); break;
	case TIMELINE_AT: snprintf(out, bytes, "the time that was asked for"); break;
	default: break;
	}
}

struct json_object *data_moments(struct data *data)
{
	static const char *const keys[] = { "kind", "incident", "label", "report", "device" };
	const struct timeline *timeline = data->timeline;
	struct json_object *object = json_object_new_object();
	struct column column = column_begin(&data->columns);

	json_add_number(object, "count", timeline->moment_count);
	for (size_t i = 0; i < timeline->moment_count; i++)
		column_add(&column, data_time(data, timeline->moments[i].time_ns));
	json_add(object, "t", column_end(&column));
	for (unsigned at = 0; at < 5; at++) {
		column = column_begin(&data->columns);
		for (size_t i = 0; i < timeline->moment_count; i++) {
			const struct timeline_moment *moment = &timeline->moments[i];
			char label[256];
			moment_label(data, moment, label, sizeof label);
			const uint32_t values[] = {
				moment->kind, moment->incident,
				strings_add(&data->strings, label),
				moment->is_report, moment->is_device };
			column_add_index(&column, values[at]);
		}
		json_add(object, keys[at], column_end(&column));
	}
	return object;
}

/* ---- failed requests ---- */

/* The largest free range that could have served a request of this kind; the host's does not
 * count for a device. */
static uint64_t largest_of(const struct fact_incident *incident)
{
	static const unsigned measured[] = { LAYER_MEASURED, LAYER_SEGMENT, LAYER_POOL,
					     LAYER_DEVICE };

	for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
		if (is_known(incident->largest_free[measured[i]].bytes))
			return incident->largest_free[measured[i]].bytes;
	return CUF_UNKNOWN;
}

static uint32_t moment_of(const struct data *data, size_t incident)
{
	for (size_t i = 0; i < data->timeline->moment_count; i++)
		if (data->timeline->moments[i].incident == incident)
			return (uint32_t)i;
	return FACT_NONE;
}

enum incident_column {
	INCIDENT_T, INCIDENT_PROCESS, INCIDENT_DEVICE, INCIDENT_REQUESTED, INCIDENT_FREE,
	INCIDENT_LARGEST, INCIDENT_OUTCOME, INCIDENT_MOMENT, INCIDENT_NODE, INCIDENT_LABEL,
	INCIDENT_COLUMNS
};

static int64_t index_of(uint32_t index) { return index == FACT_NONE ? -1 : (int64_t)index; }

static int64_t bytes_of(uint64_t bytes)
{
	return is_known(bytes) ? signed_up_to(bytes, (int64_t)1 << 52) : -1;
}

static int64_t incident_number(struct data *data, size_t i, enum incident_column column)
{
	const struct fact_incident *incident = &data->facts->incidents[i];
	char label[192];

	switch (column) {
	case INCIDENT_T: return data_time(data, incident->time_ns);
	case INCIDENT_PROCESS: return incident->process;
	case INCIDENT_DEVICE: return index_of(incident->device);
	case INCIDENT_REQUESTED: return bytes_of(incident->requested_bytes);
	case INCIDENT_FREE: return bytes_of(incident->free_bytes);
	case INCIDENT_LARGEST: return bytes_of(largest_of(incident));
	case INCIDENT_OUTCOME: return incident->outcome;
	case INCIDENT_MOMENT: return index_of(moment_of(data, i));
	case INCIDENT_NODE:
		return index_of(tree_add(&data->tree, &data->strings, data->text,
					 &incident->stack));
	default:
		text_requested(incident, label, sizeof label);
		return index_of(strings_add(&data->strings, label));
	}
}

/* In the order of the list in the report, which has the last ones. */
struct json_object *data_incidents(struct data *data)
{
	static const char *const keys[INCIDENT_COLUMNS] = {
		"t", "process", "device", "requested_bytes", "free_bytes", "largest_bytes",
		"outcome", "moment", "node", "label" };
	struct json_object *object = json_object_new_object();
	size_t all = data->facts->incident_count, count = least_of(all, data->rows);

	json_add_number(object, "count", count);
	for (unsigned at = 0; at < INCIDENT_COLUMNS; at++) {
		struct column column = column_begin(&data->columns);
		for (size_t i = all - count; i < all; i++)
			column_add(&column, incident_number(data, i, at));
		json_add(object, keys[at], column_end(&column));
	}
	return object;
}

/* ---- lanes ---- */

struct lane {
	uint64_t order; /* for sorting */
	int64_t process, tid, depth, source, name, begin, end, is_mark, is_request, request_id;
};

static struct lane lane_of_phase(struct data *data, const struct fact_phase *phase)
{
	return (struct lane){
		.process = phase->process, .tid = phase->tid, .depth = phase->depth,
		.source = phase->source, .name = strings_add(&data->strings, phase->name),
		.begin = data_time(data, phase->begin_ns), .end = data_time(data, phase->end_ns),
		.is_mark = phase->is_mark, .is_request = phase->is_request,
		.request_id = bytes_of(phase->request_id),
	};
}

static struct lane lane_of_capture(struct data *data, const struct timeline_capture *capture)
{
	return (struct lane){
		.process = capture->process, .tid = capture->tid, .source = LANE_CAPTURE,
		.name = strings_add(&data->strings, "graph capture"),
		.begin = data_time(data, capture->begin_ns),
		.end = data_time(data, capture->end_ns), .request_id = -1,
	};
}

/* An open one lasts to the end. */
static uint64_t length_of(const struct lane *lane)
{
	if (lane->end < lane->begin)
		return UINT64_MAX;
	return (uint64_t)(lane->end - lane->begin);
}

static int longest_first(const void *a, const void *b)
{
	return compare_numbers(length_of(b), length_of(a));
}

static int by_begin(const void *a, const void *b)
{
	const struct lane *left = a, *right = b;

	if (left->begin != right->begin)
		return (left->begin > right->begin) - (left->begin < right->begin);
	return (left->depth > right->depth) - (left->depth < right->depth);
}

static struct lane *lanes_all(struct data *data, size_t *count)
{
	const struct facts *facts = data->facts;
	size_t all = data->timeline->capture_count;
	struct lane *lanes;

	for (size_t p = 0; p < facts->process_count; p++)
		all += facts->processes[p].phase_count;
	lanes = xalloc_zeroed(all, sizeof *lanes);
	*count = 0;
	for (size_t p = 0; p < facts->process_count; p++)
		for (size_t i = 0; i < facts->processes[p].phase_count; i++)
			lanes[(*count)++] = lane_of_phase(data, &facts->processes[p].phases[i]);
	for (size_t i = 0; i < data->timeline->capture_count; i++)
		lanes[(*count)++] = lane_of_capture(data, &data->timeline->captures[i]);
	return lanes;
}

static int64_t lane_number(const struct lane *lane, unsigned column)
{
	const int64_t numbers[] = { lane->process, lane->tid, lane->depth, lane->source,
				    lane->name, lane->begin, lane->end, lane->is_mark,
				    lane->is_request, lane->request_id };
	return numbers[column];
}

struct json_object *data_lanes(struct data *data)
{
	static const char *const keys[] = { "process", "tid", "depth", "source", "name", "begin",
					    "end", "is_mark", "is_request", "request_id" };
	struct json_object *object = json_object_new_object();
	size_t all;
	struct lane *lanes = lanes_all(data, &all);
	size_t count = least_of(all, LANES_MOST);

	if (all > count)
		qsort(lanes, all, sizeof *lanes, longest_first);
	if (count)
		qsort(lanes, count, sizeof *lanes, by_begin);
	json_add_number(object, "count", count);
	json_add_number(object, "left_out", all - count);
	for (unsigned at = 0; at < sizeof keys / sizeof *keys; at++) {
		struct column column = column_begin(&data->columns);
		for (size_t i = 0; i < count; i++)
			column_add(&column, lane_number(&lanes[i], at));
		json_add(object, keys[at], column_end(&column));
	}
	free(lanes);
	return object;
}
