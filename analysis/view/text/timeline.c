/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the recorder's samples. A column shows the highest sample of its stretch of time. */
#include "analysis/view/text/timeline.h"

#include <string.h>
#include "analysis/base/units.h"
#include "analysis/view/focus.h"
#include "analysis/view/text/screen.h"

enum { COLUMNS_MAX = 70, BAR_COLUMNS = 40, ROWS = 8, AXIS = 10 };

/* Whose samples: of a device, or of host memory. */
struct series {
	const struct fact_process *process;
	uint32_t ordinal;       /* of the device; FACT_NONE: host */
	uint64_t limit_bytes;   /* the top of the graph; CUF_UNKNOWN: the highest sample */
	uint64_t first_ns, last_ns;
};

struct graph {
	uint64_t columns[COLUMNS_MAX]; /* CUF_UNKNOWN: no sample yet */
	size_t count;
	uint64_t highest;
};

/* With a limit of the cgroup, its own count is what reaches that limit. */
static uint64_t sample_bytes(const struct series *series, const struct fact_sample *sample)
{
	if (series->ordinal != FACT_NONE)
		return sample->device_live_bytes[series->ordinal];
	if (series->limit_bytes != CUF_UNKNOWN && sample->cgroup_bytes != CUF_UNKNOWN)
		return sample->cgroup_bytes;
	return sample->rss_bytes;
}

/* Between two samples the last one holds. False: there is nothing to draw. */
static bool fill_graph(struct series *series, struct graph *graph, size_t columns)
{
	const struct fact_process *process = series->process;
	uint64_t last = CUF_UNKNOWN, span;
	graph->count = columns;
	graph->highest = 0;
	if (process->timeline_count < 2)
		return false;
	series->first_ns = process->timeline[0].time_ns;
	series->last_ns = process->timeline[process->timeline_count - 1].time_ns;
	if (series->last_ns <= series->first_ns)
		return false;
	span = series->last_ns - series->first_ns;
	for (size_t i = 0; i < columns; i++)
		graph->columns[i] = CUF_UNKNOWN;
	for (size_t i = 0; i < process->timeline_count; i++) {
		const struct fact_sample *sample = &process->timeline[i];
		uint64_t bytes = sample_bytes(series, sample);
		double share = (double)(sample->time_ns - series->first_ns) / (double)span;
		size_t at = (size_t)(share * (double)(columns - 1));
		if (bytes == CUF_UNKNOWN || at >= columns)
			continue;
		if (graph->columns[at] == CUF_UNKNOWN || bytes > graph->columns[at])
			graph->columns[at] = bytes;
		if (bytes > graph->highest)
			graph->highest = bytes;
	}
	for (size_t i = 0; i < columns; i++) {
		if (graph->columns[i] == CUF_UNKNOWN)
			graph->columns[i] = last;
		last = graph->columns[i];
	}
	return graph->highest != 0;
}

/*
 * The limit is the top, so that the distance to it can be seen. A highest sample above it
 * wins.
 */
static uint64_t top_of(const struct series *series, const struct graph *graph)
{
	if (series->limit_bytes != CUF_UNKNOWN && series->limit_bytes >= graph->highest)
		return series->limit_bytes;
	return graph->highest;
}

/* Eight levels, one character a column. Any locale can print them. */
void timeline_bar(const struct text *text, const struct fact_process *process)
{
	static const char levels[] = " .,-=+*#";
	struct series series = { .process = process, .ordinal = FACT_NONE,
				 .limit_bytes = process->host.cgroup_max_bytes };
	size_t columns = BAR_COLUMNS;
	char bar[BAR_COLUMNS + 1] = "";
	struct graph graph;

	if (text->style->columns < STYLE_COLUMNS)
		columns = BAR_COLUMNS / 2;
	if (!fill_graph(&series, &graph, columns))
		return;
	for (size_t i = 0; i < columns; i++) {
		double share = (double)graph.columns[i] / (double)top_of(&series, &graph);
		size_t level = 7;
		if (graph.columns[i] == CUF_UNKNOWN)
			level = 0;
		else if (share < 1)
			level = (size_t)(share * 8);
		bar[i] = levels[level];
	}
	bar[columns] = 0;
	fprintf(text->out, "Memory  0 s |%s| %s\n", bar,
		units_duration(series.last_ns - series.first_ns).s);
}

/* Only the top and the middle are labelled. */
static void print_axis(const struct text *text, unsigned row, uint64_t top)
{
	/* in integers: a damaged recording's top may be any number */
	struct unit_text label = units_bytes(top / ROWS * row + top % ROWS * row / ROWS);
	if (row != ROWS && row != ROWS / 2)
		*label.s = 0;
	fprintf(text->out, "  %*s |", AXIS, label.s);
}

/* From the top down: a column is filled where its bytes reach at least half of the row. */
static void print_graph(const struct text *text, const struct series *series,
			const struct graph *graph)
{
	uint64_t top = top_of(series, graph);
	char line[COLUMNS_MAX + 1];
	for (unsigned row = ROWS; row; row--) {
		double least = ((double)row - 0.5) / ROWS * (double)top;
		size_t end = 0;
		for (size_t i = 0; i < graph->count; i++) {
			bool filled = graph->columns[i] != CUF_UNKNOWN &&
				(double)graph->columns[i] >= least;
			line[i] = filled ? '#' : ' ';
			if (filled)
				end = i + 1;
		}
		line[end] = 0;
		print_axis(text, row, top);
		fprintf(text->out, "%s\n", line);
	}
}

static size_t column_of(const struct series *series, size_t columns, uint64_t time_ns)
{
	double share =
		(double)(time_ns - series->first_ns) / (double)(series->last_ns - series->first_ns);
	size_t at = (size_t)(share * (double)(columns - 1));
	if (at >= columns)
		return columns - 1;
	return at;
}

/* '^' below each moment at which a request failed. */
static void print_failures(const struct text *text, const struct series *series, size_t columns)
{
	char line[COLUMNS_MAX + 1];
	bool any = false;
	memset(line, ' ', columns);
	line[columns] = 0;
	for (size_t i = 0; i < text->facts->incident_count; i++) {
		const struct fact_incident *incident = &text->facts->incidents[i];
		if (incident->time_ns < series->first_ns || incident->time_ns == CUF_UNKNOWN)
			continue;
		line[column_of(series, columns, incident->time_ns)] = '^';
		any = true;
	}
	if (!any)
		return;
	for (size_t end = columns; end && line[end - 1] == ' '; end--)
		line[end - 1] = 0;
	fprintf(text->out, "  %*s  %s\n", AXIS, "", line);
	fprintf(text->out, "  %*s  ^ a request failed\n", AXIS, "");
}

/*
 * Five columns are the axis and its margins. The graph is of the device in focus, or of host
 * memory when that ran out.
 */
void timeline_section(const struct text *text)
{
	const struct fact_process *process = focus_process(text->facts);
	const struct fact_device *device = focus_device(text->facts);
	bool host = focus_is_host(text->facts) || !device;
	struct series series = { .process = process, .ordinal = FACT_NONE,
				 .limit_bytes = process->host.cgroup_max_bytes };
	size_t columns = text->style->columns - AXIS - 5;
	struct graph graph;

	if (columns > COLUMNS_MAX)
		columns = COLUMNS_MAX;
	if (!host && device->focus < text->facts->process_count &&
	    device->ordinal < CUF_DEVICES_MAX) {
		process = series.process = &text->facts->processes[device->focus];
		series.ordinal = device->ordinal;
		series.limit_bytes = device->total_bytes;
	}
	if (!fill_graph(&series, &graph, columns))
		return;
	if (host)
		text_section(text, "Host memory over time (highest %s)",
			     units_bytes(graph.highest).s);
	else
		text_section(text, "Memory of GPU %u over time (blocks of pid %u, highest %s)",
			     device->ordinal, process->pid, units_bytes(graph.highest).s);
	print_graph(text, &series, &graph);
	fprintf(text->out, "  %*s 0 s%*s\n", AXIS, "", (int)columns - 2,
		units_duration(series.last_ns - series.first_ns).s);
	print_failures(text, &series, columns);
}
