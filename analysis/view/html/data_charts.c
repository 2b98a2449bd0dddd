/* SPDX-License-Identifier: Apache-2.0 */
/* Series over time: stacks at the moments, the exact range of each stretch, samples. */
#include "analysis/view/html/data.h"

#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/view/focus.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/kinds.h"
#include "analysis/view/text/holders.h"

enum { LINE_POINTS = 4096, LABEL = 320 };

static struct json_object *numbers(struct data *data, const uint64_t *items, size_t count)
{
	struct column column = column_begin(&data->columns);

	for (size_t i = 0; i < count; i++)
		column_add_unsigned(&column, items[i]);
	return column_end(&column);
}

static void process_label(const struct data *data, uint32_t p, char *out, size_t bytes)
{
	const struct fact_process *process = &data->facts->processes[p];
	char program[160];

	text_program(process, program, sizeof program);
	if (process->rank)
		snprintf(out, bytes, "rank %.32s, %s (pid %u)", process->rank, program,
			 process->pid);
	else
		snprintf(out, bytes, "%s (pid %u)", program, process->pid);
}

static void part_label(const struct data *data, const struct chart *chart,
		       enum chart_grouping by, const struct chart_part *part, char *out,
		       size_t bytes)
{
	struct place place;

	if (part->is_older)
		snprintf(out, bytes, "before the oldest event that is left");
	else if (part->is_unused)
		holders_name_slack(&data->facts->devices[chart->device], out, bytes);
	else if (by == BY_ROLE)
		snprintf(out, bytes, "%s", part->role ? role_word(part->role) : "role not known");
	else if (by == BY_KIND)
		snprintf(out, bytes, "%s", kind_word(part->index));
	else if (by == BY_PROCESS)
		process_label(data, part->index, out, bytes);
	else if (part->index == FACT_NONE)
		snprintf(out, bytes, "smaller call sites");
	else if (!data->timeline->sites[part->index].stack.depth)
		snprintf(out, bytes, "call site not recorded");
	else {
		place_of(data->text->places, &data->timeline->sites[part->index].stack, &place);
		place_text(&place, out, bytes);
	}
}

static struct json_object *part_json(struct data *data, const struct chart *chart,
				     enum chart_grouping by, const struct chart_part *part)
{
	static const char *const keys[CHART_GROUPINGS] = { "kind", "role", "site", "process" };
	struct json_object *object = json_object_new_object();
	char label[LABEL];

	part_label(data, chart, by, part, label, sizeof label);
	json_add_text(object, "label", label);
	if (by == BY_ROLE)
		json_add_text(object, "role", part->role);
	else
		json_add_index(object, keys[by], part->index);
	json_add_bool(object, "rest", !part->is_older && !part->is_unused &&
				      part->index == FACT_NONE && !part->role);
	json_add_bool(object, "older", part->is_older);
	json_add_bool(object, "unused", part->is_unused);
	json_add(object, "bytes", numbers(data, part->bytes, data->timeline->moment_count));
	return object;
}

static struct json_object *by_json(struct data *data, const struct chart *chart)
{
	static const char *const keys[CHART_GROUPINGS] = { "kind", "role", "site", "process" };
	struct json_object *object = json_object_new_object();

	for (unsigned by = 0; by < CHART_GROUPINGS; by++) {
		struct json_object *array;
		if (by == BY_PROCESS && chart->by[by].count < 2)
			continue;
		array = json_object_new_array();
		for (size_t i = 0; i < chart->by[by].count; i++)
			json_object_array_add(array, part_json(data, chart, by,
								 &chart->by[by].parts[i]));
		json_add(object, keys[by], array);
	}
	return object;
}

static struct json_object *range_json(struct data *data, const struct chart *chart)
{
	const struct timeline *timeline = data->timeline;
	const struct timeline_range *range;
	struct json_object *object;

	if (chart->layer == TIMELINE_HOST)
		return NULL;
	range = &timeline->ranges[2 * chart->device + (chart->layer == TIMELINE_FRAMEWORK)];
	object = json_object_new_object();
	json_add(object, "from", data_json_time(data, timeline->begin_ns));
	json_add(object, "to", data_json_time(data, timeline->end_ns));
	json_add_number(object, "count", TIMELINE_STRETCHES);
	json_add(object, "low", numbers(data, range->low, TIMELINE_STRETCHES));
	json_add(object, "high", numbers(data, range->high, TIMELINE_STRETCHES));
	return object;
}

/* ---- lines ---- */

enum line { LINE_RSS, LINE_CGROUP, LINE_MALLOC, LINE_PINNED, LINE_DRIVER, LINES };
static const char *const line_names[LINES] = { "rss", "cgroup", "malloc_live", "pinned",
					       "driver_used" };

static uint64_t line_bytes(const struct fact_sample *sample, enum line line, unsigned ordinal,
			   uint64_t total_bytes)
{
	switch (line) {
	case LINE_RSS: return sample->rss_bytes;
	case LINE_CGROUP: return sample->cgroup_bytes;
	case LINE_MALLOC: return sample->host_live_bytes;
	case LINE_PINNED: return sample->pinned_bytes;
	default: break;
	}
	if (!is_known(total_bytes) || !is_known(sample->device_free_bytes[ordinal]))
		return CUF_UNKNOWN;
	return subtract_to_zero(total_bytes, sample->device_free_bytes[ordinal]);
}

/* Which samples of a process are points: with too many, the highest of each few. */
static size_t line_points(const struct fact_process *process, enum line line, unsigned ordinal,
			  uint64_t total_bytes, const struct fact_sample **out)
{
	size_t count = 0, stride = process->timeline_count / LINE_POINTS + 1;

	for (size_t i = 0; i < process->timeline_count; i += stride) {
		const struct fact_sample *best = NULL;
		uint64_t most = 0;
		for (size_t k = i; k < i + stride && k < process->timeline_count; k++) {
			const struct fact_sample *sample = &process->timeline[k];
			uint64_t bytes = line_bytes(sample, line, ordinal, total_bytes);
			if (!is_known(bytes) || (best && bytes <= most))
				continue;
			best = sample;
			most = bytes;
		}
		if (best)
			out[count++] = best;
	}
	return count;
}

static void add_line(struct data *data, struct json_object *lines,
		     const struct fact_process *process, enum line line, unsigned ordinal,
		     uint64_t total_bytes)
{
	const struct fact_sample *points[LINE_POINTS + 1];
	size_t count = line_points(process, line, ordinal, total_bytes, points);
	struct json_object *object;
	struct column column;

	if (!count)
		return;
	object = json_object_new_object();
	json_add_text(object, "name", line_names[line]);
	json_add_number(object, "count", count);
	column = column_begin(&data->columns);
	for (size_t i = 0; i < count; i++)
		column_add(&column, data_time(data, points[i]->time_ns));
	json_add(object, "t", column_end(&column));
	column = column_begin(&data->columns);
	for (size_t i = 0; i < count; i++)
		column_add_unsigned(&column, line_bytes(points[i], line, ordinal, total_bytes));
	json_add(object, "bytes", column_end(&column));
	json_object_array_add(lines, object);
}

/* The driver's figure is of the whole device: one process that sampled it is enough. */
static struct json_object *lines_json(struct data *data, const struct chart *chart)
{
	struct json_object *lines = json_object_new_array();
	const struct fact_device *device;

	if (chart->layer == TIMELINE_HOST) {
		for (enum line line = LINE_RSS; line <= LINE_PINNED; line++)
			add_line(data, lines, &data->facts->processes[chart->process], line, 0, 0);
	} else {
		device = &data->facts->devices[chart->device];
		if (device->ordinal < CUF_DEVICES_MAX)
			add_line(data, lines, &data->facts->processes[device->focus], LINE_DRIVER,
				 device->ordinal, device->total_bytes);
	}
	return lines;
}

/* ---- the chart ---- */

static void chart_title(const struct data *data, const struct chart *chart, char *out,
			size_t bytes)
{
	char process[LABEL];
	uint32_t ordinal;

	if (chart->layer == TIMELINE_HOST) {
		process_label(data, chart->process, process, sizeof process);
		snprintf(out, bytes, "Host memory of %s", process);
		return;
	}
	ordinal = data->facts->devices[chart->device].ordinal;
	if (chart->layer == TIMELINE_FRAMEWORK)
		snprintf(out, bytes, "Inside the framework's segments on GPU %u", ordinal);
	else
		snprintf(out, bytes, "GPU %u", ordinal);
}

/* The highest of the range, which is exact; of host memory what the facts say. */
static struct json_object *peak_json(const struct data *data, const struct chart *chart)
{
	uint64_t bytes = 0, time_ns = CUF_UNKNOWN;
	struct json_object *object;

	if (chart->layer == TIMELINE_HOST) {
		const struct fact_host *host = &data->facts->processes[chart->process].host;
		bytes = known_or_zero(host->live_peak_bytes);
		time_ns = host->live_peak_ns;
	} else if (chart->layer == TIMELINE_DEVICE) {
		bytes = data->facts->devices[chart->device].peak_bytes;
		time_ns = data->facts->devices[chart->device].peak_ns;
	} else {
		const struct timeline_range *range =
			&data->timeline->ranges[2 * chart->device + 1];
		for (size_t i = 0; i < TIMELINE_STRETCHES; i++)
			if (is_known(range->high[i]) && range->high[i] > bytes) {
				bytes = range->high[i];
				time_ns = range->high_ns[i];
			}
	}
	if (!bytes || !is_known(time_ns))
		return NULL;
	object = json_object_new_object();
	json_add(object, "t", data_json_time(data, time_ns));
	json_add_number(object, "bytes", bytes);
	return object;
}

static struct json_object *chart_json(struct data *data, const struct chart *chart)
{
	const struct timeline *timeline = data->timeline;
	struct json_object *object = json_object_new_object();
	struct column times = column_begin(&data->columns);
	char title[LABEL + 32];

	chart_title(data, chart, title, sizeof title);
	json_add_number(object, "layer", chart->layer);
	json_add_index(object, "process", chart->process);
	json_add_index(object, "device", chart->device);
	json_add_text(object, "title", title);
	json_add_number(object, "limit_bytes", chart->limit_bytes);
	json_add_number(object, "total_bytes", chart->total_bytes);
	json_add(object, "peak", peak_json(data, chart));
	json_add_number(object, "count", timeline->moment_count);
	for (size_t i = 0; i < timeline->moment_count; i++)
		column_add(&times, data_time(data, timeline->moments[i].time_ns));
	json_add(object, "t", column_end(&times));
	json_add_bool(object, "inside", chart->is_inside);
	json_add(object, "sum", numbers(data, chart->sum, timeline->moment_count));
	json_add(object, "by", by_json(data, chart));
	json_add(object, "range", range_json(data, chart));
	json_add(object, "lines", lines_json(data, chart));
	return object;
}

struct json_object *data_charts(struct data *data)
{
	struct json_object *array = json_object_new_array();
	struct charts charts;

	charts_make(&charts, data->timeline, data->facts, data->row_of_site,
		    focus_is_host(data->facts));
	for (size_t i = 0; i < charts.count; i++)
		json_object_array_add(array, chart_json(data, &charts.items[i]));
	charts_free(&charts);
	return array;
}
