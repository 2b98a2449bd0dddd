/* SPDX-License-Identifier: Apache-2.0 */
/* Series over time: stacks at the moments, the exact range of each stretch, samples. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/focus.h"
#include "analysis/facts/kinds.h"

enum { LINE_POINTS = 4096, LABEL = 320 };

/* ---- parts ---- */

struct part_cells {
	const struct chart *chart;
	struct chart_part part;
	enum chart_grouping by;
	size_t count;
	char label[LABEL];
};

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

static void name_part(const struct data *data, const struct part_cells *cells, char *out,
		      size_t bytes)
{
	const struct chart_part *part = &cells->part;
	enum chart_grouping by = cells->by;
	struct place place;

	if (part->is_older)
		snprintf(out, bytes, "before the oldest event that is left");
	else if (part->is_unused)
		holders_name_slack(&data->facts->devices[cells->chart->device], out, bytes);
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

#define IS_BY(name, grouping) \
	static bool name(const struct fields *fields, const void *object) \
	{ \
		return ((const struct part_cells *)object)->by == (grouping); \
	}
IS_BY(is_by_kind, BY_KIND)
IS_BY(is_by_role, BY_ROLE)
IS_BY(is_by_site, BY_SITE)
IS_BY(is_by_process, BY_PROCESS)

static struct json_object *is_rest(const struct fields *fields, const void *object)
{
	const struct chart_part *part = &((const struct part_cells *)object)->part;

	return json_object_new_boolean(!part->is_older && !part->is_unused &&
				       part->index == FACT_NONE && !part->role);
}

#define OF struct part_cells
static const struct field part_fields[] = {
	{ "label", TEXT_HERE(label) },
	{ "kind", .is_there = is_by_kind, INDEX(part.index) },
	{ "role", .is_there = is_by_role, TEXT_OR_NULL(part.role) },
	{ "site", .is_there = is_by_site, INDEX(part.index),
	  .meaning = "stands for its row" },
	{ "process", .is_there = is_by_process, INDEX(part.index) },
	{ "rest", VALUE(FLAG, is_rest) },
	{ "older", FLAG(part.is_older),
	  .meaning = "what the samples have of the time whose events are overwritten" },
	{ "unused", FLAG(part.is_unused), .meaning = "what nobody holds of a framework's "
	  "segments" },
	{ "bytes", SERIES(part.bytes, count) },
};
static const struct shape part_shape = SHAPE("part", part_fields, .meaning = "the parts of each "
	"grouping add up to `sum` at every point");
#undef OF

static const char *const groupings[CHART_GROUPINGS] = { "kind", "role", "site", "process" };

static size_t write_parts(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = fields->state;
	const struct chart *chart = object; /* the first member of its cells */
	enum chart_grouping by = BY_KIND;

	while (strcmp(groupings[by], field->key) != 0)
		by++;
	for (size_t i = 0; i < chart->by[by].count; i++) {
		struct part_cells cells = { .chart = chart, .part = chart->by[by].parts[i],
					    .by = by, .count = data->timeline->moment_count };

		name_part(data, &cells, cells.label, sizeof cells.label);
		fields_row(fields, NULL, field->shape, &cells);
	}
	return chart->by[by].count;
}

static bool has_processes(const struct fields *fields, const void *object)
{
	const struct chart *chart = object;

	return chart->by[BY_PROCESS].count >= 2;
}

#define OF struct chart
static const struct field by_fields[] = {
	{ "kind", ROWS(part_shape, write_parts) },
	{ "role", ROWS(part_shape, write_parts) },
	{ "site", ROWS(part_shape, write_parts), .meaning = "the 12 largest and the rest" },
	{ "process", .is_there = has_processes, ROWS(part_shape, write_parts),
	  .meaning = "where several processes use the device" },
};
static const struct shape by_shape = SHAPE(NULL, by_fields);
#undef OF

/* ---- the range ---- */

struct range_cells { struct timeline_range range; uint64_t from, to; size_t count; };
#define OF struct range_cells
static const struct field range_fields[] = {
	{ "from", TIME(from) },
	{ "to", TIME(to) },
	{ "count", COUNT(count), .meaning = "equal stretches of time between them" },
	{ "low", SERIES_HERE(range.low, count), .meaning = "the least within each, exact" },
	{ "high", SERIES_HERE(range.high, count), .meaning = "the most" },
};
static const struct shape range_shape = SHAPE(NULL, range_fields, .meaning = "of device and "
	"framework: draw it as a band behind the stack, so that no spike is lost");
#undef OF

static size_t write_range(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = fields->state;
	const struct chart *chart = object; /* the first member of its cells */
	size_t at = 2 * chart->device + (chart->layer == TIMELINE_FRAMEWORK);

	if (chart->layer == TIMELINE_HOST)
		fields_row(fields, field->key, field->shape, NULL);
	else
		fields_row(fields, field->key, field->shape, &(struct range_cells){
			data->timeline->ranges[at], data->timeline->begin_ns,
			data->timeline->end_ns, TIMELINE_STRETCHES });
	return 1;
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

struct line_cells { const char *name; const uint64_t *times, *bytes; size_t count; };
#define OF struct line_cells
static const struct field line_fields[] = {
	{ "name", TEXT(name),
	  .meaning = "driver_used (total minus free, as the driver reports it), rss, cgroup, "
	  "malloc_live, pinned" },
	{ "count", COUNT(count), .meaning = "4,096 at most" },
	{ "t", TIME_SERIES(times, count), .meaning = "times of its own" },
	{ "bytes", SERIES(bytes, count) },
};
static const struct shape line_shape = SHAPE(NULL, line_fields);
#undef OF

static void add_line(struct fields *fields, const struct field *field, uint32_t process,
		     enum line line, unsigned ordinal, uint64_t total_bytes)
{
	const struct fact_sample *points[LINE_POINTS + 1];
	uint64_t times[LINE_POINTS + 1], bytes[LINE_POINTS + 1];
	size_t count = line_points(&fields->facts->processes[process], line, ordinal, total_bytes,
				   points);

	for (size_t i = 0; i < count; i++) {
		times[i] = points[i]->time_ns;
		bytes[i] = line_bytes(points[i], line, ordinal, total_bytes);
	}
	if (count)
		fields_row(fields, NULL, field->shape, &(struct line_cells){
			line_names[line], times, bytes, count });
}

/* The driver's figure is of the whole device: one process that sampled it is enough. */
static size_t write_lines(struct fields *fields, const struct field *field, const void *object)
{
	const struct chart *chart = object;
	const struct fact_device *device;

	if (chart->layer == TIMELINE_HOST) {
		for (enum line line = LINE_RSS; line <= LINE_PINNED; line++)
			add_line(fields, field, chart->process, line, 0, 0);
		return 0;
	}
	device = &fields->facts->devices[chart->device];
	if (device->ordinal < CUF_DEVICES_MAX)
		add_line(fields, field, device->focus, LINE_DRIVER, device->ordinal,
			 device->total_bytes);
	return 0;
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

struct peak { uint64_t time_ns, bytes; };
#define OF struct peak
static const struct field peak_fields[] = {
	{ "t", TIME(time_ns) },
	{ "bytes", NUMBER(bytes) },
};
static const struct shape peak_shape = SHAPE(NULL, peak_fields);
#undef OF

/* The highest of the range, which is exact; of host memory what the facts have. */
static struct peak peak_of(const struct data *data, const struct chart *chart)
{
	struct peak peak = { CUF_UNKNOWN, 0 };

	if (chart->layer == TIMELINE_HOST) {
		const struct fact_host *host = &data->facts->processes[chart->process].host;
		peak = (struct peak){ host->live_peak_ns, known_or_zero(host->live_peak_bytes) };
	} else if (chart->layer == TIMELINE_DEVICE) {
		const struct fact_device *device = &data->facts->devices[chart->device];
		peak = (struct peak){ device->peak_ns, device->peak_bytes };
	} else {
		const struct timeline_range *range =
			&data->timeline->ranges[2 * chart->device + 1];
		for (size_t i = 0; i < TIMELINE_STRETCHES; i++)
			if (is_known(range->high[i]) && range->high[i] > peak.bytes)
				peak = (struct peak){ range->high_ns[i], range->high[i] };
	}
	return peak;
}

struct chart_cells {
	struct chart chart;
	char title[LABEL + 32];
	struct peak peak;
	const struct peak *known_peak; /* NULL: unknown */
	const uint64_t *times;
	size_t count;
};
#define OF struct chart_cells
static const struct field chart_fields[] = {
	{ "layer", COUNT(chart.layer), .meaning = "in names.layer" },
	{ "process", INDEX(chart.process),
	  .meaning = "of the host; else null: all processes of the device" },
	{ "device", INDEX(chart.device) },
	{ "title", TEXT_HERE(title) },
	{ "limit_bytes", NUMBER(chart.limit_bytes) },
	{ "total_bytes", NUMBER(chart.total_bytes) },
	{ "peak", POINTER(known_peak, peak_shape) },
	{ "count", COUNT(count) },
	{ "t", TIME_SERIES(times, count), .meaning = "the same column as that of the moments" },
	{ "inside", FLAG(chart.is_inside), .meaning = "of a device: by.role and by.site charge a "
	  "framework's segments to the sites that hold the blocks inside (layer framework)" },
	{ "sum", SERIES(chart.sum, count) },
	{ "by", PART(by_shape) },
	{ "range", .type = FIELD_OBJECT, .is_nullable = true, .shape = &range_shape,
	  .rows = write_range, .size = 0 },
	{ "lines", ROWS(line_shape, write_lines), .meaning = "the recorder's samples" },
};
const struct shape chart_shape = SHAPE("chart", chart_fields);
#undef OF

static void write_chart(struct fields *fields, const struct field *field, const struct chart *chart,
			const uint64_t *times)
{
	const struct data *data = fields->state;
	struct chart_cells cells = { .chart = *chart, .peak = peak_of(data, chart), .times = times,
				     .count = data->timeline->moment_count };

	chart_title(data, chart, cells.title, sizeof cells.title);
	if (cells.peak.bytes && is_known(cells.peak.time_ns))
		cells.known_peak = &cells.peak;
	fields_row(fields, NULL, field->shape, &cells);
}

size_t data_charts(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = object;
	size_t count = data->timeline->moment_count;
	uint64_t *times = xalloc_zeroed(count, sizeof *times);
	struct charts charts;

	for (size_t i = 0; i < count; i++)
		times[i] = data->timeline->moments[i].time_ns;
	charts_make(&charts, data->timeline, data->facts, data->row_of_site,
		    focus_is_host(data->facts));
	for (size_t i = 0; i < charts.count; i++)
		write_chart(fields, field, &charts.items[i], times);
	charts_free(&charts);
	free(times);
	return charts.count;
}
