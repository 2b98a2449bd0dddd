/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of `cuflight serve`: one table, from which the exposition, its documents, the alert
 * rules and the dashboard are made.
 *
 * Contract. metrics_write writes Prometheus text 0.0.4 or OpenMetrics 1.0. What is unknown has no
 * sample; a forecast of "never" is +Inf. No timestamps. Names and help never change with the data,
 * and the number of series is bounded: labels are enums, names of processes and of folders, and at
 * most WATCH_SITES call sites a process. Texts of recordings are data: they are escaped. Write
 * errors stay in the stream.
 */
#pragma once

#include <stdio.h>
#include "analysis/watch/watch.h"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER };

struct exposition;
struct exposed {
	const char *name;
	enum metric_type type;
	const char *labels; /* in the order of the values: struct metric_label */
	const char *help;   /* a sentence */
	const char *source; /* a few words: scrape, pass, ... */
	void (*put)(struct exposition *out);
};

/* A label of a list, which is "process,resource=gpu|host": its values where they are words. */
struct metric_label { const char *name, *words; size_t bytes, word_bytes; };
/* The one at *at, which moves on. False: no more. */
bool metric_label_next(const char **at, struct metric_label *label);
bool metric_label_is(const struct metric_label *label, const char *name);

/* All metrics in order, NULL at the end. */
extern const struct exposed *const metric_table[];

enum { PATH_LABELS = 4, PATH_LABEL_BYTES = 32 };

struct metrics_options {
	bool no_sites;
	/* names for the folders below the directory, as a namespace and a pod: whatever is of one
	 * process or recording has them as labels */
	char path_labels[PATH_LABELS][PATH_LABEL_BYTES]; size_t path_label_count;
};

/* names: "namespace/pod". False: one is no name of a label, or a metric has it already. */
bool metrics_name_folders(struct metrics_options *options, const char *names);

void metrics_write(FILE *out, const struct watch *watch, const struct metrics_options *options,
		   bool is_openmetrics);

/* The samples of one metric as numbers. values: of its labels in order, METRIC_LABELS at most;
 * NULL: this sample has no such label. */
enum { METRIC_LABELS = 12 };
typedef void metric_take(void *state, const char *const *values, double value);
void metric_read(const struct exposed *metric, const struct watch *watch, metric_take *take,
		 void *state);
