/* SPDX-License-Identifier: Apache-2.0 */
/* The object that the page is given, in the order in which it fills the tables of texts and of
 * frames, which come last. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/json/report_json.h"

/* A text of any length, unlike json_text. */
static struct json_object *whole_text(const char *text)
{
	size_t bytes = 3 * strlen(text) + 1;
	char *clean = xalloc_bytes(bytes);
	struct json_object *value;

	clean_utf8(clean, bytes, text);
	value = json_object_new_string(clean);
	free(clean);
	return value;
}

static struct json_object *version(const struct fields *fields, const void *object)
{
	return json_number(1);
}

static struct json_object *generator(const struct fields *fields, const void *object)
{
	return json_text("cuflight " CUFLIGHT_VERSION);
}

static struct json_object *screen(const struct fields *fields, const void *object)
{
	const struct data *data = object;

	return whole_text(data->screen);
}

static struct json_object *full(const struct fields *fields, const void *object)
{
	const struct data *data = object;

	return whole_text(data->full);
}

static struct json_object *markdown(const struct fields *fields, const void *object)
{
	const struct data *data = object;
	struct json_object *value;
	char *text;

	if (asprintf(&text, "```\n%s```\n", data->screen) < 0)
		return NULL;
	value = whole_text(text);
	free(text);
	return value;
}

static struct json_object *begin(const struct fields *fields, const void *object)
{
	const struct data *data = object;
	char number[32];

	snprintf(number, sizeof number, "%llu", (unsigned long long)data->timeline->begin_ns);
	return json_text(number);
}

static struct json_object *duration(const struct fields *fields, const void *object)
{
	const struct data *data = object;

	return json_number(data->timeline->end_ns - data->timeline->begin_ns);
}

/* The whole document, or the object is not whole, either. */
static size_t write_report(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = object;

	if (!report_json_rows(fields->stream->out, data->facts, data->text->frames, data->rows))
		fields->stream->stopped = true;
	return 1;
}

static struct json_object *strings(const struct fields *fields, const void *object)
{
	const struct data *data = object;

	return strings_json(&data->strings);
}

#define OF struct data
static const struct field origin_fields[] = {
	{ "realtime_ns", VALUE(TEXT, begin), .meaning = "a text: it exceeds 2^53" },
};
static const struct shape origin_shape = SHAPE(NULL, origin_fields);

static const struct field page_fields[] = {
	{ "report", .type = FIELD_ANY, .rows = write_report, .size = 0,
	  .meaning = "the document of `cuflight report --json` (`cuflight.report/1`), the same "
	  "facts. Its times are absolute ns (beyond 2^53: good to 256 ns); for drawing use the "
	  "times of this file",
	  LIMITS("type": "object") },
	{ "page", VALUE(NUMBER, version), .meaning = "the version, 1" },
	{ "generator", VALUE(TEXT, generator), .meaning = "the command and its version" },
	{ "title", TEXT(title), .meaning = "the headline" },
	{ "report_rows", COUNT(rows),
	  .meaning = "how many rows the long lists of the report have at most; 4096, less where "
	  "the file would be too large (each list's `NAME_left_out` has the rest)" },
	{ "screen", VALUE(TEXT, screen), .meaning = "the first screen" },
	{ "text", VALUE(TEXT, full), .meaning = "the long report" },
	{ "markdown", VALUE(TEXT, markdown),
	  .meaning = "the first screen for an issue: a fenced block" },
	{ "origin", PART(origin_shape), .meaning = "the start of the first process" },
	{ "duration_ns", VALUE(NUMBER, duration), .meaning = "from the origin to the last end" },
#undef OF
#define OF struct timeline
	{ "moment", VIA(struct data, timeline), COUNT(report),
	  .meaning = "the moment of the report" },
#undef OF
#define OF struct data
	{ "focus", OBJECT(focus, page_focus_shape) },
	{ "names", PART(names_shape) },
	{ "holders", OBJECT(holders, page_holders_shape) },
	{ "processes", ROWS(page_process_shape, data_processes), LONG,
	  "in the order of report.processes" },
#undef OF
#define OF struct facts
	{ "devices", VIA(struct data, facts), LIST(devices, device_count, page_device_shape), 0,
	  "in the order of report.devices" },
#undef OF
	{ "incidents", MADE(incidents_shape, data_incidents) },
	{ "moments", MADE(moments_shape, data_moments) },
	{ "charts", ROWS(chart_shape, data_charts), .meaning = "the first is that of the focus" },
	{ "sites", MADE(sites_shape, data_sites) },
	{ "values", MADE(values_shape, data_values) },
	{ "blocks", MADE(blocks_shape, data_blocks) },
	{ "ages", ROWS(ages_shape, data_ages), .meaning = "lifetimes" },
	{ "lanes", MADE(lanes_shape, data_lanes) },
	{ "frames", MADE(frames_shape, data_frames) },
	{ "nodes", MADE(nodes_shape, data_nodes) },
	{ "strings", VALUE(ANY, strings), .meaning = "texts that columns have the numbers of",
	  LIMITS("type": "array", "items": {"type": "string"}) },
};
#define OF struct data
const struct shape page_shape = SHAPE("page", page_fields, .is_bare = true);
#undef OF
