/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics, and its walk. */
#include "analysis/view/metrics/metrics.h"

#include "analysis/view/metrics/exposition.h"
#include "analysis/view/metrics/metrics_groups.h"

const struct exposed *const metric_table[] = {
#define METRIC(name) &metric_##name,
	METRICS(METRIC)
#undef METRIC
	NULL,
};

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
