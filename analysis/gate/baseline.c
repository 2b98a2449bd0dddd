/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and spreads over runs, and the file that keeps them. */
#include "analysis/gate/baseline.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

struct baseline_record {
	const char *identity;
	enum gate_group group;
	uint64_t peak_bytes, end_bytes;
};

/* Of an even number, the mean of the two in the middle. */
static uint64_t median_of(const uint64_t *sorted, size_t count)
{
	uint64_t low = sorted[(count - 1) / 2], high = sorted[count / 2];

	return low + (high - low) / 2;
}

struct gate_spread spread_of(uint64_t *values, size_t count)
{
	struct gate_spread spread = { .runs = count };

	if (!count)
		return spread;
	qsort(values, count, sizeof *values, compare_uint64);
	spread.least = values[0];
	spread.most = values[count - 1];
	spread.median = median_of(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = most_of(values[i], spread.median) - least_of(values[i], spread.median);
	qsort(values, count, sizeof *values, compare_uint64);
	spread.mad = median_of(values, count);
	return spread;
}

void baseline_begin(struct gate_baseline *baseline)
{
	*baseline = (struct gate_baseline){ .arena = arena_new(), .program = "" };
}

static const char *copied(struct gate_baseline *baseline, const char *text)
{
	return arena_text(baseline->arena, text, strlen(text));
}

static void take_environment(struct gate_baseline *baseline, const struct measured *run)
{
	const struct gate_environment *from = &run->environment;

	baseline->program = copied(baseline, run->program);
	baseline->environment = (struct gate_environment){
		.gpu = copied(baseline, from->gpu),
		.gpu_bytes = from->gpu_bytes,
		.driver = copied(baseline, from->driver),
		.frameworks = copied(baseline, from->frameworks),
		.host_mode = copied(baseline, from->host_mode),
		.recorder = copied(baseline, from->recorder),
	};
}

void baseline_add_site(struct gate_baseline *baseline, const char *identity, enum gate_group group,
		       uint64_t peak_bytes, uint64_t end_bytes)
{
	if (peak_bytes < BASELINE_SITE_BYTES && end_bytes < BASELINE_SITE_BYTES)
		return;
	xalloc_grow(&baseline->records, baseline->record_count, &baseline->record_room,
		    sizeof *baseline->records);
	baseline->records[baseline->record_count++] = (struct baseline_record){
		copied(baseline, identity), group, peak_bytes, end_bytes
	};
}

void baseline_add(struct gate_baseline *baseline, const struct measured *run)
{
	if (!baseline->runs)
		take_environment(baseline, run);
	xalloc_grow(&baseline->values, baseline->runs, &baseline->value_room,
		    sizeof *baseline->values * MEASURE_MAX);
	memcpy(&baseline->values[baseline->runs * MEASURE_MAX], run->values, sizeof run->values);
	baseline->runs++;
	for (size_t i = 0; i < run->site_count; i++)
		baseline_add_site(baseline, run->sites[i].identity, run->sites[i].group,
				  run->sites[i].peak_bytes, run->sites[i].end_bytes);
}

static int by_identity(const void *a, const void *b)
{
	const struct baseline_record *left = a, *right = b;

	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return strcmp(left->identity, right->identity);
}

/* The records from `first` that are of one site. */
static struct baseline_site site_of(const struct gate_baseline *baseline, size_t first,
				    size_t count, uint64_t *room)
{
	const struct baseline_record *records = &baseline->records[first];
	struct baseline_site site = { records->identity, records->group, { 0 }, { 0 } };

	for (int which = 0; which < 2; which++) {
		memset(room, 0, baseline->runs * sizeof *room);
		for (size_t i = 0; i < count; i++)
			room[i] = which ? records[i].end_bytes : records[i].peak_bytes;
		if (which)
			site.end = spread_of(room, baseline->runs);
		else
			site.peak = spread_of(room, baseline->runs);
	}
	return site;
}

static void finish_sites(struct gate_baseline *baseline, uint64_t *room)
{
	size_t count = baseline->record_count, next;

	if (count)
		qsort(baseline->records, count, sizeof *baseline->records, by_identity);
	baseline->sites = arena_zeroed(baseline->arena, count, sizeof *baseline->sites);
	for (size_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && next - i < baseline->runs &&
				   !by_identity(&baseline->records[i], &baseline->records[next]);
		     next++)
			;
		baseline->sites[baseline->site_count] = site_of(baseline, i, next - i, room);
		/* what most runs did not have is a sample, or a matter of timing */
		if (baseline->sites[baseline->site_count].peak.median ||
		    baseline->sites[baseline->site_count].end.median)
			baseline->site_count++;
	}
}

static void finish_measures(struct gate_baseline *baseline, uint64_t *room)
{
	for (int m = 0; m < MEASURE_MAX; m++) {
		uint64_t known = 0;
		for (uint64_t run = 0; baseline->values && run < baseline->runs; run++) {
			const struct gate_value *value = &baseline->values[run * MEASURE_MAX +
									   (uint64_t)m];
			if (value->value != CUF_UNKNOWN && value->high != CUF_UNKNOWN)
				room[known++] = value->value;
		}
		if (known && known == baseline->runs)
			baseline->measures[m] = spread_of(room, known);
	}
}

void baseline_finish(struct gate_baseline *baseline)
{
	uint64_t *room;

	if (!baseline->runs)
		baseline->runs = 1; /* sites only: one moment */
	room = xalloc_zeroed(baseline->runs, sizeof *room);
	finish_measures(baseline, room);
	finish_sites(baseline, room);
	free(room);
	free(baseline->values);
	free(baseline->records);
	baseline->values = NULL;
	baseline->records = NULL;
	baseline->record_count = 0;
}

void baseline_free(struct gate_baseline *baseline)
{
	free(baseline->values);
	free(baseline->records);
	arena_free(baseline->arena);
	*baseline = (struct gate_baseline){ 0 };
}

/* The file of a baseline. It is kept under version control, so its text is written by hand: one
 * measure and one call site a line, always in the same order. */
enum { NAME_BYTES = 8200, READ_AT_ONCE = 1 << 16 };
#define FILE_BYTES_MAX ((size_t)64 << 20)

/* ---- writing ---- */

static void write_text(FILE *out, const char *text)
{
	char clean[NAME_BYTES];
	struct json_object *object;

	clean_utf8(clean, sizeof clean, text);
	object = json_object_new_string(clean);
	fputs(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE), out);
	json_object_put(object);
}

static void write_key(FILE *out, const char *key, const char *text, const char *end)
{
	fprintf(out, "    \"%s\": ", key);
	if (*text)
		write_text(out, text);
	else
		fputs("null", out);
	fputs(end, out);
}

static void write_spread(FILE *out, const struct gate_spread *spread)
{
	fprintf(out, "[%llu, %llu, %llu, %llu]", (unsigned long long)spread->median,
		(unsigned long long)spread->least, (unsigned long long)spread->most,
		(unsigned long long)spread->mad);
}

static void write_environment(FILE *out, const struct gate_environment *environment)
{
	fputs("  \"environment\": {\n", out);
	write_key(out, "gpu", environment->gpu, ",\n");
	if (environment->gpu_bytes == CUF_UNKNOWN)
		fputs("    \"gpu_bytes\": null,\n", out);
	else
		fprintf(out, "    \"gpu_bytes\": %llu,\n",
			(unsigned long long)environment->gpu_bytes);
	write_key(out, "driver", environment->driver, ",\n");
	write_key(out, "frameworks", environment->frameworks, ",\n");
	write_key(out, "host", environment->host_mode, ",\n");
	write_key(out, "recorder", environment->recorder, "\n  },\n");
}

static void write_measures(FILE *out, const struct gate_baseline *baseline)
{
	bool any = false;

	fputs("  \"measures\": {", out);
	for (size_t i = 0; i < MEASURE_MAX; i++) {
		if (!baseline->measures[i].runs)
			continue;
		fprintf(out, "%s\n    \"%s\": ", any ? "," : "", gate_measures[i].name);
		write_spread(out, &baseline->measures[i]);
		any = true;
	}
	fputs("\n  },\n", out);
}

bool baseline_write(const struct gate_baseline *baseline, FILE *out)
{
	fputs("{\n  \"schema\": \"" BASELINE_SCHEMA "\",\n", out);
	fprintf(out, "  \"runs\": %llu,\n  \"program\": ", (unsigned long long)baseline->runs);
	write_text(out, baseline->program);
	fputs(",\n", out);
	write_environment(out, &baseline->environment);
	fputs("  \"figures\": [\"median\", \"least\", \"most\", \"mad\"],\n", out);
	write_measures(out, baseline);
	fputs("  \"sites\": [", out);
	for (size_t i = 0; i < baseline->site_count; i++) {
		const struct baseline_site *site = &baseline->sites[i];
		fprintf(out, "%s\n    {\"kind\": \"%s\", \"site\": ", i ? "," : "",
			gate_group_names[site->group]);
		write_text(out, site->identity);
		fputs(", \"peak\": ", out);
		write_spread(out, &site->peak);
		fputs(", \"end\": ", out);
		write_spread(out, &site->end);
		fputs("}", out);
	}
	fputs("\n  ]\n}\n", out);
	return !ferror(out);
}

/* ---- reading ---- */

struct reading {
	const char *path;
	struct gate_baseline *out;
	char *error;
	size_t error_bytes;
};

/* One sentence: the file and what is wrong with it. */
static int refuse(const struct reading *reading, const char *reason, const char *what)
{
	snprintf(reading->error, reading->error_bytes, "cannot use baseline '%s': %s%s",
		 reading->path, reason, what);
	return -1;
}

/* NULL, with the reason in *why. */
static char *read_whole(const char *path, size_t *bytes, const char **why)
{
	int file = regular_file_open(path, 0, why);
	size_t room = 0;
	char *text = NULL;
	ssize_t got;

	if (file < 0)
		return NULL;
	for (*bytes = 0;; *bytes += (size_t)got) {
		if (*bytes + READ_AT_ONCE > room) {
			room = 2 * room + READ_AT_ONCE;
			text = xalloc_resize(text, room, 1);
		}
		got = read(file, text + *bytes, READ_AT_ONCE);
		if (got <= 0 || *bytes > FILE_BYTES_MAX)
			break;
	}
	*why = got < 0 ? strerror(errno) : "it is larger than 64 MiB";
	close(file);
	if (!got)
		return text;
	free(text);
	return NULL;
}

static const char *text_of(struct gate_baseline *out, struct json_object *object, const char *key)
{
	struct json_object *value;
	const char *text;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return "";
	text = json_object_get_string(value);
	return arena_text(out->arena, text, strlen(text));
}

/* Exactly four integers that are not negative. */
static bool take_spread(struct json_object *array, uint64_t runs, struct gate_spread *out)
{
	uint64_t figures[4];

	if (!json_object_is_type(array, json_type_array) || json_object_array_length(array) != 4)
		return false;
	for (size_t i = 0; i < 4; i++) {
		struct json_object *figure = json_object_array_get_idx(array, i);
		if (!json_object_is_type(figure, json_type_int) ||
		    json_object_get_int64(figure) < 0)
			return false;
		figures[i] = json_object_get_uint64(figure);
	}
	*out = (struct gate_spread){ figures[0], figures[1], figures[2], figures[3], runs };
	return out->least <= out->median && out->median <= out->most;
}

static int take_measures(const struct reading *reading, struct json_object *measures)
{
	json_object_object_foreach(measures, name, array) {
		const struct gate_measure *measure = gate_measure_find(name, strlen(name));
		if (!measure)
			continue; /* of a newer cuflight */
		if (!take_spread(array, reading->out->runs,
				 &reading->out->measures[measure - gate_measures]))
			return refuse(reading, "no figures for measure ", name);
	}
	return 0;
}

/* GROUP_MAX: of a newer cuflight. */
static enum gate_group group_named(const char *name)
{
	int i = 0;

	while (i < GROUP_MAX && strcmp(gate_group_names[i], name) != 0)
		i++;
	return (enum gate_group)i;
}

static int take_sites(const struct reading *reading, struct json_object *sites)
{
	struct gate_baseline *out = reading->out;
	size_t count = json_object_array_length(sites);

	out->sites = arena_zeroed(out->arena, count, sizeof *out->sites);
	for (size_t i = 0; i < count; i++) {
		struct json_object *from = json_object_array_get_idx(sites, i), *peak, *end;
		struct baseline_site *site = &out->sites[out->site_count];
		if (!json_object_is_type(from, json_type_object) ||
		    !json_object_object_get_ex(from, "peak", &peak) ||
		    !json_object_object_get_ex(from, "end", &end) ||
		    !take_spread(peak, out->runs, &site->peak) ||
		    !take_spread(end, out->runs, &site->end))
			return refuse(reading, "a call site has no figures", "");
		site->identity = text_of(out, from, "site");
		site->group = group_named(text_of(out, from, "kind"));
		out->site_count += site->group < GROUP_MAX;
	}
	return 0;
}

static void read_environment(struct gate_baseline *out, struct json_object *from)
{
	struct json_object *bytes;

	out->environment = (struct gate_environment){
		.gpu = text_of(out, from, "gpu"),
		.gpu_bytes = CUF_UNKNOWN,
		.driver = text_of(out, from, "driver"),
		.frameworks = text_of(out, from, "frameworks"),
		.host_mode = text_of(out, from, "host"),
		.recorder = text_of(out, from, "recorder"),
	};
	if (json_object_object_get_ex(from, "gpu_bytes", &bytes) &&
	    json_object_is_type(bytes, json_type_int))
		out->environment.gpu_bytes = json_object_get_uint64(bytes);
}

static int take_document(const struct reading *reading, struct json_object *document)
{
	struct gate_baseline *out = reading->out;
	struct json_object *runs, *measures, *sites, *environment;
	const char *schema;

	if (!json_object_is_type(document, json_type_object))
		return refuse(reading, "it is no baseline; 'cuflight baseline' writes one", "");
	schema = text_of(out, document, "schema");
	if (strcmp(schema, BASELINE_SCHEMA) != 0)
		return refuse(reading, *schema ? "this cuflight reads " BASELINE_SCHEMA ", it is " :
						 "it has no schema " BASELINE_SCHEMA, schema);
	if (!json_object_object_get_ex(document, "runs", &runs) || json_object_get_int64(runs) < 1)
		return refuse(reading, "it has no runs", "");
	if (!json_object_object_get_ex(document, "measures", &measures) ||
	    !json_object_is_type(measures, json_type_object) ||
	    !json_object_object_get_ex(document, "sites", &sites) ||
	    !json_object_is_type(sites, json_type_array) ||
	    !json_object_object_get_ex(document, "environment", &environment))
		return refuse(reading, "measures, sites or environment are missing", "");
	out->runs = json_object_get_uint64(runs);
	out->program = text_of(out, document, "program");
	read_environment(out, environment);
	return take_measures(reading, measures) || take_sites(reading, sites) ? -1 : 0;
}

int baseline_read(struct gate_baseline *out, const char *path, char *error, size_t error_bytes)
{
	struct reading reading = { path, out, error, error_bytes };
	struct json_tokener *parser;
	struct json_object *document;
	const char *why = "";
	size_t bytes;
	char *text = read_whole(path, &bytes, &why);
	int status;

	if (!text)
		return refuse(&reading, why, "");
	parser = json_tokener_new();
	document = json_tokener_parse_ex(parser, text, (int)bytes);
	baseline_begin(out);
	if (!bytes)
		status = refuse(&reading, "the file is empty", "");
	else if (json_tokener_get_error(parser) == json_tokener_continue)
		status = refuse(&reading, "the file is cut: its JSON does not end", "");
	else if (json_tokener_get_error(parser) != json_tokener_success)
		status = refuse(&reading, "it is not JSON: ",
				json_tokener_error_desc(json_tokener_get_error(parser)));
	else
		status = take_document(&reading, document);
	json_object_put(document);
	json_tokener_free(parser);
	free(text);
	if (status)
		baseline_free(out);
	return status;
}
