/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics, and its walk. */
#include "analysis/view/live/metrics.h"

#include <string.h>
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"

const struct exposed *const metric_table[] = {
#define METRIC(name) &metric_##name,
	METRICS(METRIC)
#undef METRIC
	NULL,
};

static bool is_taken(const char *name, size_t bytes)
{
	for (const struct exposed *const *metric = metric_table; *metric; metric++) {
		const char *at = (*metric)->labels;
		struct metric_label label;

		while (metric_label_next(&at, &label))
			if (label.bytes == bytes && !memcmp(label.name, name, bytes))
				return true;
	}
	return false;
}

static bool is_among(const struct metrics_options *options, const char *name, size_t bytes)
{
	for (size_t i = 0; i < options->path_label_count; i++)
		if (strlen(options->path_labels[i]) == bytes &&
		    !memcmp(options->path_labels[i], name, bytes))
			return true;
	return false;
}

/* As Prometheus has it, without those that it keeps for itself. */
static bool is_label(const char *name, size_t bytes)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	return bytes && bytes < PATH_LABEL_BYTES && strspn(name, letters) &&
	       strncmp(name, "__", 2) != 0 && !is_taken(name, bytes);
}

bool metrics_name_folders(struct metrics_options *options, const char *names)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
					 "0123456789";

	options->path_label_count = 0;
	for (;;) {
		size_t bytes = strspn(names, characters);

		if (!is_label(names, bytes) || is_among(options, names, bytes) ||
		    options->path_label_count == PATH_LABELS)
			return false;
		snprintf(options->path_labels[options->path_label_count++], PATH_LABEL_BYTES,
			 "%.*s", (int)bytes, names);
		if (!names[bytes])
			return true;
		if (names[bytes] != '/')
			return false;
		names += bytes + 1;
	}
}

void metrics_write(FILE *out, const struct watch *watch, const struct metrics_options *options,
		   bool is_openmetrics)
{
	struct exposition exposition = { .out = out, .watch = watch, .options = options,
					 .is_openmetrics = is_openmetrics };

	exposition.device_count = watch_devices(watch, exposition.devices);
	for (const struct exposed *const *metric = metric_table; *metric; metric++) {
		exposition_begin(&exposition, *metric);
		(*metric)->put(&exposition);
	}
	if (is_openmetrics)
		fputs("# EOF\n", out);
}

void metric_read(const struct exposed *metric, const struct watch *watch, metric_take *take,
		 void *state)
{
	static const struct metrics_options all;
	struct exposition exposition = { .watch = watch, .options = &all, .take = take,
					 .state = state };

	exposition.device_count = watch_devices(watch, exposition.devices);
	exposition_begin(&exposition, metric);
	metric->put(&exposition);
}
