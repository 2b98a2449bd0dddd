/* SPDX-License-Identifier: Apache-2.0 */
/* Moments, failed requests, and lanes: phases, requests, captures of graphs. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"

enum { LANES_MOST = 8192, LANE_CAPTURE = PHASE_SOURCE_MAX };

/* ---- moments ---- */

struct moment_cells { struct timeline_moment moment; char label[256]; };

#define OF struct moment_cells
static const struct field moment_fields[] = {
	{ "t", TIME(moment.time_ns), .meaning = "ascending. It may lie a little after its request "
	  "failed: what the request itself freed belongs to it" },
	{ "kind", NUMBER(moment.kind), .meaning = "in names.moment: sample, incident, peak (of a "
	  "device or of the host), end (before exit handlers), at (--at)" },
	{ "incident", INDEX(moment.incident) },
	{ "label", TEXT_HERE(label), .meaning = "empty for samples; of a peak with whose it is" },
	{ "report", FLAG(moment.is_report), .meaning = "the moment of the report (moment)" },
	{ "device", FLAG(moment.is_device),
	  .meaning = "the moment of a device (report.devices[].moment)" },
};
static const struct shape moment_rows_shape = SHAPE(NULL, moment_fields);
#undef OF
DATA_TABLE(moments_shape, moment_rows_shape, "the moments for which call sites are known exactly; "
	"some 1,100 at most");

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

const void *data_moments(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;
	size_t count = data->timeline->moment_count;
	struct moment_cells *rows = xalloc_zeroed(count, sizeof *rows);

	for (size_t i = 0; i < count; i++) {
		rows[i].moment = data->timeline->moments[i];
		moment_label(data, &rows[i].moment, rows[i].label, sizeof rows[i].label);
	}
	return data_table(data, rows, count, 0);
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

struct incident_cells {
	struct fact_incident incident;
	uint64_t largest_bytes;
	uint32_t moment, node;
	char label[192];
};

#define OF struct incident_cells
static const struct field incident_fields[] = {
	{ "t", TIME(incident.time_ns) },
	{ "process", INDEX(incident.process) },
	{ "device", INDEX(incident.device), .meaning = "null: host" },
	{ "requested_bytes", NUMBER(incident.requested_bytes) },
	{ "free_bytes", NUMBER(incident.free_bytes) },
	{ "largest_bytes", NUMBER(largest_bytes),
	  .meaning = "the largest free range that matters" },
	{ "outcome", NUMBER(incident.outcome), .meaning = "in names.outcome" },
	{ "moment", INDEX(moment) },
	{ "node", INDEX(node), .meaning = "call stack" },
	{ "label", TEXT_HERE(label), .meaning = "cudaMalloc(6.0 MiB)" },
};
static const struct shape incident_rows_shape = SHAPE(NULL, incident_fields);
#undef OF
DATA_TABLE(incidents_shape, incident_rows_shape, "failed requests, in the order of "
	"report.incidents");

/* In the order of the list in the report, which has the last ones. */
const void *data_incidents(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;
	size_t all = data->facts->incident_count, count = least_of(all, data->rows);
	struct incident_cells *rows = xalloc_zeroed(count, sizeof *rows);

	for (size_t i = 0; i < count; i++) {
		size_t number = all - count + i;
		const struct fact_incident *incident = &data->facts->incidents[number];

		rows[i] = (struct incident_cells){
			.incident = *incident,
			.largest_bytes = largest_of(incident),
			.moment = moment_of(data, number),
			.node = tree_add(&data->tree, &data->strings, data->text, &incident->stack),
		};
		text_requested(incident, rows[i].label, sizeof rows[i].label);
	}
	return data_table(data, rows, count, 0);
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
		.request_id = is_known(phase->request_id) ?
			signed_up_to(phase->request_id, COLUMN_NUMBER_MOST) : -1,
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

#define OF struct lane
static const struct field lane_fields[] = {
	{ "process", SIGNED(process), .meaning = "an index" },
	{ "tid", SIGNED(tid), .meaning = "0: the whole process" },
	{ "depth", SIGNED(depth) },
	{ "source", SIGNED(source), .meaning = "in names.lane: mark, nvtx, inferred, capture" },
	{ "name", SIGNED(name), .meaning = "in strings" },
	{ "begin", SIGNED(begin), .meaning = "a time, ascending" },
	{ "end", SIGNED(end), .meaning = "a time; null: open" },
	{ "is_mark", SIGNED(is_mark) },
	{ "is_request", SIGNED(is_request) },
	{ "request_id", SIGNED(request_id) },
};
static const struct shape lane_rows_shape = SHAPE(NULL, lane_fields);
#undef OF

#define OF struct data_table
static const struct field lanes_fields[] = {
	{ "count", COUNT(count) },
	{ "left_out", COUNT(left_out) },
	DATA_COLUMNS(lane_rows_shape),
};
const struct shape lanes_shape = SHAPE(NULL, lanes_fields, .meaning = "phases, requests, marks and "
	"captures of graphs: at most 8,192, the longest");
#undef OF

const void *data_lanes(const struct fields *fields, const void *object)
{
	struct data *data = fields->state;
	size_t all;
	struct lane *lanes = lanes_all(data, &all);
	size_t count = least_of(all, LANES_MOST);

	if (all > count)
		qsort(lanes, all, sizeof *lanes, longest_first);
	if (count)
		qsort(lanes, count, sizeof *lanes, by_begin);
	return data_table(data, lanes, count, all - count);
}
