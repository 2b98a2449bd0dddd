/* SPDX-License-Identifier: Apache-2.0 */
/* One sample a line. */
#include "analysis/view/live/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"

bool metric_label_next(const char **at, struct metric_label *label)
{
	label->name = *at;
	label->bytes = strcspn(*at, "=,");
	label->words = *at + label->bytes;
	label->words += *label->words == '=';
	label->word_bytes = strcspn(label->words, ",");
	*at = label->words + label->word_bytes;
	*at += **at == ',';
	return label->bytes;
}

bool metric_label_is(const struct metric_label *label, const char *name)
{
	return strlen(name) == label->bytes && !memcmp(label->name, name, label->bytes);
}

void exposition_begin(struct exposition *out, const struct exposed *metric)
{
	out->metric = metric;
	out->is_begun = false;
}

static bool ends_in(const char *text, size_t bytes, const char *ending)
{
	size_t length = strlen(ending);

	return bytes > length && !memcmp(text + bytes - length, ending, length);
}

/* OpenMetrics names a counter without the ending of its samples, and wants the unit apart. */
static void put_metric_head(struct exposition *out)
{
	static const char *const units[] = { "bytes", "seconds" };
	static const char *const types[] = { [METRIC_GAUGE] = "gauge",
					     [METRIC_COUNTER] = "counter" };
	const struct exposed *metric = out->metric;
	size_t bytes = strlen(metric->name);

	if (out->is_openmetrics && metric->type == METRIC_COUNTER)
		bytes -= strlen("_total");
	fprintf(out->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", (int)bytes, metric->name,
		metric->help, (int)bytes, metric->name, types[metric->type]);
	for (size_t i = 0; out->is_openmetrics && i < sizeof units / sizeof *units; i++)
		if (ends_in(metric->name, bytes, units[i]))
			fprintf(out->out, "# UNIT %.*s %s\n", (int)bytes, metric->name, units[i]);
	out->is_begun = true;
}

/* What is no UTF-8 has no place in an exposition. */
static void put_text(FILE *out, const char *text, size_t most)
{
	const char *end = text + strnlen(text, most);

	while (text < end) {
		size_t bytes = clean_character(text);

		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (bytes)
			fwrite(text, 1, bytes, out);
		else
			fputs("\xef\xbf\xbd", out);
		text += bytes ? bytes : 1;
	}
}

static char put_label(struct exposition *out, char between, const char *name, size_t name_bytes,
		      const char *value, size_t value_bytes)
{
	fprintf(out->out, "%c%.*s=\"", between, (int)name_bytes, name);
	put_text(out->out, value, value_bytes);
	fputc('"', out->out);
	return ',';
}

/* The folders above the recording, as far as there are any. */
static void put_folders(struct exposition *out)
{
	const struct metrics_options *options = out->options;
	const char *at = watch_short_path(out->watch, out->path), *slash;

	for (size_t i = 0; i < options->path_label_count && (slash = strchr(at, '/')); i++) {
		put_label(out, ',', options->path_labels[i], PATH_LABEL_BYTES, at,
			  (size_t)(slash - at));
		at = slash + 1;
	}
}

static void put_labels(struct exposition *out, va_list values)
{
	const char *at = out->metric->labels, *value;
	struct metric_label label;
	bool has_folders = false;
	char between = '{';

	while (metric_label_next(&at, &label)) {
		value = va_arg(values, const char *);
		if (value)
			between = put_label(out, between, label.name, label.bytes, value,
					    SIZE_MAX);
		if (value && !has_folders && (metric_label_is(&label, "process") ||
					      metric_label_is(&label, "recording"))) {
			put_folders(out);
			has_folders = true;
		}
	}
	if (between == ',')
		fputc('}', out->out);
}

/* False: it is to be written. */
static bool take(struct exposition *out, double value, va_list values)
{
	const char *of[METRIC_LABELS], *at = out->metric->labels;
	struct metric_label label;
	size_t count = 0;

	if (!out->take)
		return false;
	while (count < METRIC_LABELS && metric_label_next(&at, &label))
		of[count++] = va_arg(values, const char *);
	out->take(out->state, of, value);
	return true;
}

static void put_name(struct exposition *out, va_list values)
{
	if (!out->is_begun)
		put_metric_head(out);
	fputs(out->metric->name, out->out);
	put_labels(out, values);
}

void put_bytes(struct exposition *out, uint64_t value, ...)
{
	va_list values;

	if (value == CUF_UNKNOWN)
		return;
	va_start(values, value);
	if (!take(out, (double)value, values)) {
		put_name(out, values);
		fprintf(out->out, " %" PRIu64 "\n", value);
	}
	va_end(values);
}

static void write_number(FILE *out, double value)
{
	if (isinf(value))
		fputs(value > 0 ? " +Inf\n" : " -Inf\n", out);
	else
		fprintf(out, " %.15g\n", value);
}

void put_number(struct exposition *out, double value, ...)
{
	va_list values;

	if (isnan(value))
		return;
	va_start(values, value);
	if (!take(out, value, values)) {
		put_name(out, values);
		write_number(out->out, value);
	}
	va_end(values);
}

const struct watch_process *next_process(struct exposition *out, size_t *at)
{
	while (*at < out->watch->count) {
		const struct watch_process *process = out->watch->processes[(*at)++];
		if (process->is_succeeded)
			continue;
		out->path = process->path;
		return process;
	}
	return NULL;
}

struct gpu_label gpu_label(unsigned ordinal, const uint8_t uuid[16])
{
	struct gpu_label label = { "", "" };

	snprintf(label.gpu, sizeof label.gpu, "%u", ordinal % CUF_DEVICES_MAX);
	if (!uuid_text(uuid, label.uuid))
		*label.uuid = 0;
	return label;
}

void put_passes(struct exposition *out, put_passed *put, bool which)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		for (size_t i = 0; watch_runs(process) && process->pass &&
				   i < process->pass->device_count; i++) {
			const struct pass_device *device = &process->pass->devices[i];
			struct gpu_label label = gpu_label(device->ordinal, device->uuid);

			put(out, process, device, &label, which);
		}
}
