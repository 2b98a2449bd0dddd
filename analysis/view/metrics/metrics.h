/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of `cuflight serve`: one table, from which the exposition, its documents, the alert
 * rules and the dashboard are made.
 *
 * Contract. metrics_write writes Prometheus text 0.0.4 or OpenMetrics 1.0. What is unknown has no
 * sample; a forecast of "never" is +Inf. No timestamps. Names and help never change with the data,
 * and the number of series is bounded: labels are enums, names of processes, and at most
 * WATCH_SITES call sites a process. Texts of recordings are data: they are escaped. Write errors
 * stay in the stream.
 */
#ifndef VIEW_METRICS_H
#define VIEW_METRICS_H

#include <stdio.h>
#include "analysis/watch/watch.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER };

struct exposition;
struct exposed {
	const char *name;
	enum metric_type type;
	const char *labels; /* comma-separated, in the order of the values */
	const char *help;   /* a sentence */
	const char *source; /* a few words: scrape, pass, ... */
	void (*put)(struct exposition *out);
};

/* All metrics in order, NULL at the end. */
extern const struct exposed *const metric_table[];

struct metrics_options { bool no_sites; };

void metrics_write(FILE *out, const struct watch *watch, const struct metrics_options *options,
		   bool is_openmetrics);

#endif
