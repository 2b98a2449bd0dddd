/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a frame: call sites of all processes that run in one table, and the processes. What
 * ranks and workers of one program do alike is one row.
 *
 * Contract: pure. Rows are heap memory. They refer to the frame and are valid as long as it is.
 */
#pragma once

#include "analysis/view/live/frame.h"

enum rows_order { ROWS_BY_BYTES, ROWS_BY_RATE, ROWS_BY_AGE, ROWS_BY_NAME, ROWS_ORDERS };
extern const char *const rows_order_names[ROWS_ORDERS];

enum { ROWS_ALL_GPUS = WATCH_DEVICES, FILTER_BYTES = 64 };

struct rows_options {
	enum rows_order order;
	bool is_split;           /* each process has rows of its own */
	size_t gpu;              /* only this one of the frame; ROWS_ALL_GPUS */
	char filter[FILTER_BYTES]; /* in the name, the path, the process, the role or the state */
};

struct site_row {
	const struct top_process *process; /* that has most of it */
	const struct pass_site *site;        /* of that process */
	unsigned process_count;
	const struct top_process *last; /* of them */
	uint64_t bytes, count;
	uint64_t gpus;           /* a bit for each GPU of the frame that it is on */
	uint64_t resident_bytes; /* of its processes */
	uint64_t whole_bytes;    /* of which it is a part: those GPUs, or what is resident */
	double bytes_per_s;   /* NAN */
	double age_s;         /* of the oldest block; NAN */
	bool is_judged;
	enum live_state state; /* the worst */
};

struct process_row {
	const struct top_process *process; /* the first of them */
	unsigned process_count;
	uint64_t gpu_bytes, gpu_peak_bytes, resident_bytes, failures; /* of all */
};

struct site_row *rows_of_sites(const struct top_frame *frame, const struct rows_options *options,
			       size_t *count);
/* Whoever grows comes first, so the first row is what a verdict of the whole is about. Ranks of one
 * job with the same verdict are one row, unless is_split. */
struct process_row *rows_of_processes(const struct top_frame *frame, bool is_split, size_t *count);
