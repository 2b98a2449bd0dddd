/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes samples of the metric whose turn it is. Contract: as metrics.h. The values of the labels
 * follow in the order of metric.labels, one for each; NULL leaves the label out.
 */
#pragma once

#include "analysis/view/live/metrics.h"
#include "analysis/watch/devices.h"

struct exposition {
	FILE *out;
	const struct watch *watch;
	const struct metrics_options *options;
	const struct exposed *metric;
	bool is_openmetrics, is_begun;
	const char *path; /* of the recording that the next samples are of, borrowed */
	metric_take *take;         /* NULL: samples are written to out */
	void *state;
	struct watch_device devices[WATCH_DEVICES];
	size_t device_count;
};

void exposition_begin(struct exposition *out, const struct exposed *metric);
/* CUF_UNKNOWN: no sample. */
void put_bytes(struct exposition *out, uint64_t value, ...);
/* NAN: no sample. */
void put_number(struct exposition *out, double value, ...);

/* The next process that is shown, from *at on; NULL: no more. Samples are of its recording now. */
const struct watch_process *next_process(struct exposition *out, size_t *at);

/* "0", and its UUID or "". */
struct gpu_label { char gpu[8], uuid[48]; };
struct gpu_label gpu_label(unsigned ordinal, const uint8_t uuid[16]);

/* Puts each device of each process that runs, as the last pass saw it. which: the caller's */
typedef void put_passed(struct exposition *out, const struct watch_process *process,
			const struct pass_device *device, const struct gpu_label *label,
			bool which);
void put_passes(struct exposition *out, put_passed *put, bool which);
