/* SPDX-License-Identifier: Apache-2.0 */
/* One table writes the file, reads it and makes its schema. */
#include "analysis/view/commands/baseline_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/commands/gate_view.h"

#define SCHEMA "cuflight.baseline/1"
#define FILE_BYTES_MAX ((size_t)64 << 20)

#define OF struct gate_spread
static const struct field figure_fields[] = {
	{ "median", COUNT(median) },
	{ "least", COUNT(least) },
	{ "most", COUNT(most) },
	{ "mad", COUNT(mad) },
};
static const struct shape figures_shape = SHAPE("figures", figure_fields, .is_tuple = true,
	.meaning = "median, least, most, median of the absolute deviations");
#undef OF

#define OF struct gate_environment
static const struct field environment_fields[] = { ENVIRONMENT_FIELDS(WORD) };
static const struct shape environment_shape = SHAPE(NULL, environment_fields);
#undef OF

#define OF struct baseline_site
static const struct field site_fields[] = {
	{ "kind", NAME(group, gate_group_words) },
	{ "site", TEXT(identity),
	  .meaning = "modules and functions, innermost first; survives a rebuild" },
	{ "peak", OBJECT(peak, figures_shape) },
	{ "end", OBJECT(end, figures_shape) },
};
static const struct shape site_shape = SHAPE(NULL, site_fields);
#undef OF

static size_t write_figure_names(struct fields *fields, const struct field *field,
				 const void *object)
{
	for (size_t i = 0; i < figures_shape.count; i++)
		json_stream_value(fields->stream, NULL, json_text(figure_fields[i].key));
	return figures_shape.count;
}

static size_t write_measures(struct fields *fields, const struct field *field, const void *object)
{
	const struct gate_baseline *baseline = object;

	for (size_t i = 0; i < MEASURE_MAX; i++)
		if (baseline->measures[i].runs)
			fields_row(fields, gate_measures[i].name, field->shape,
				   &baseline->measures[i]);
	return MEASURE_MAX;
}

static bool take_measures(struct fields_reading *reading, struct json_object *value, void *object)
{
	struct gate_baseline *baseline = object;

	if (!json_object_is_type(value, json_type_object))
		return false;
	json_object_object_foreach(value, name, figures) {
		const struct gate_measure *measure = gate_measure_find(name, strlen(name));
		struct gate_spread *spread;

		if (!measure)
			continue; /* of a newer cuflight */
		spread = &baseline->measures[measure - gate_measures];
		spread->runs = baseline->runs;
		if (fields_read(reading, &figures_shape, figures, spread))
			continue;
		reading->wrong = measure->name;
		return false;
	}
	return true;
}

#define OF struct gate_baseline
static const struct field baseline_fields[] = {
	{ "runs", COUNT(runs), LIMITS("minimum": 1) },
	{ "program", TEXT(program) },
	{ "environment", OBJECT(environment, environment_shape) },
	{ "figures", .type = FIELD_TEXTS, .rows = write_figure_names, .size = 0, ONE_LINE,
	  "what the numbers of a measure and of a call site are",
	  LIMITS("const": ["median", "least", "most", "mad"]) },
	{ "measures", .type = FIELD_MAP, .shape = &figures_shape, .rows = write_measures,
	  .take = take_measures, .size = 0, A_LINE_EACH, "those that every run knew" },
	{ "sites", LIST(sites, site_count, site_shape), A_LINE_EACH },
};
const struct shape baseline_shape = SHAPE("baseline", baseline_fields,
	.meaning = "What cuflight baseline writes. Keys may be added.");
#undef OF

bool baseline_write(const struct gate_baseline *baseline, FILE *out)
{
	struct fields fields = { .document = baseline };

	fields_print_as(out, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED, &fields,
			&baseline_shape, baseline);
	return !ferror(out);
}

/* ---- reading ---- */

static bool are_ordered(const struct gate_spread *spread)
{
	return spread->least <= spread->median && spread->median <= spread->most;
}

/* What is read has the runs of the file, and no call sites of a newer cuflight. Returns what is
 * wrong with the figures, or NULL. */
static const char *settle(struct gate_baseline *out)
{
	size_t kept = 0;

	for (size_t m = 0; m < MEASURE_MAX; m++)
		if (!are_ordered(&out->measures[m]))
			return gate_measures[m].name;
	for (size_t i = 0; i < out->site_count; i++) {
		struct baseline_site *site = &out->sites[i];

		site->peak.runs = site->end.runs = out->runs;
		if (!are_ordered(&site->peak) || !are_ordered(&site->end))
			return "sites";
		if (site->group < GROUP_MAX)
			out->sites[kept++] = *site;
	}
	out->site_count = kept;
	return out->runs ? NULL : "runs";
}

static bool take_document(struct gate_baseline *out, struct json_object *document, char *why,
			  size_t bytes)
{
	struct fields_reading reading = { .arena = out->arena };
	struct json_object *value = NULL;
	const char *schema;

	json_object_object_get_ex(document, "schema", &value);
	schema = json_object_get_string(value);
	if (!json_object_is_type(document, json_type_object))
		snprintf(why, bytes, "it is no baseline; 'cuflight baseline' writes one");
	else if (!schema)
		snprintf(why, bytes, "it has no schema " SCHEMA);
	else if (strcmp(schema, SCHEMA) != 0)
		snprintf(why, bytes, "this cuflight reads " SCHEMA ", it is %s", schema);
	else if (!fields_read(&reading, &baseline_shape, document, out) ||
		 (reading.wrong = settle(out)))
		snprintf(why, bytes, "'%s' is missing or wrong", reading.wrong);
	else
		return true;
	return false;
}

static bool parse(struct gate_baseline *out, const char *text, size_t text_bytes, char *why,
		  size_t bytes)
{
	struct json_tokener *parser = json_tokener_new();
	struct json_object *document = json_tokener_parse_ex(parser, text, (int)text_bytes);
	enum json_tokener_error error = json_tokener_get_error(parser);
	bool is_taken = false;

	if (!text_bytes)
		snprintf(why, bytes, "the file is empty");
	else if (error == json_tokener_continue)
		snprintf(why, bytes, "the file is cut: its JSON does not end");
	else if (error != json_tokener_success)
		snprintf(why, bytes, "it is not JSON: %s", json_tokener_error_desc(error));
	else
		is_taken = take_document(out, document, why, bytes);
	json_object_put(document);
	json_tokener_free(parser);
	return is_taken;
}

int baseline_read(struct gate_baseline *out, const char *path, char *error, size_t error_bytes)
{
	char why[256] = "";
	const char *reason;
	size_t bytes;
	char *text = regular_file_read(path, FILE_BYTES_MAX, &bytes, &reason);
	bool is_taken = false;

	if (text) {
		baseline_begin(out);
		is_taken = parse(out, text, bytes, why, sizeof why);
		reason = why;
	}
	if (!is_taken)
		snprintf(error, error_bytes, "cannot use baseline '%s': %s", path, reason);
	if (text && !is_taken)
		baseline_free(out);
	free(text);
	return is_taken ? 0 : -1;
}
