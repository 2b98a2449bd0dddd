/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs, as of one moment. Text, JSON and the screen of `cuflight top` draw this and nothing
 * else; the live page of `serve` shows the JSON.
 *
 * Contract: a frame is a copy, so it can be kept while the watch goes on. top_take reads no file.
 * Texts are printable. Unknown is CUF_UNKNOWN, of doubles NAN. JSON is cuflight.live/1 on one line:
 * bytes and counts are integers, unknown is null, keys are only added.
 */
#pragma once

#include <stdio.h>
#include "analysis/view/json/fields.h"
#include "analysis/watch/devices.h"

/* From the best news to the worst. */
enum top_verdict {
	VERDICT_ENDED,
	VERDICT_STEADY,
	VERDICT_WAITING, /* not analysed yet */
	VERDICT_LEVELS,  /* cannot be analysed */
	VERDICT_EARLY,   /* runs too short */
	VERDICT_RISING,  /* something warms up or fills */
	VERDICT_FAILED,  /* ended, and for a cause of its own */
	VERDICT_GROWING, /* something grows, or leaks */
	VERDICT_MAX
};
extern const char *const top_verdict_names[VERDICT_MAX];

struct top_gpu {
	unsigned number;
	uint8_t uuid[16];
	uint64_t total_bytes;
	bool is_known;                     /* the following are: some process was analysed */
	uint64_t owners[WATCH_OWNER_MAX];  /* sum to total_bytes */
	uint64_t free_minute_bytes, free_hour_bytes; /* the least that was free */
	uint64_t largest_free_bytes;       /* what the driver could give in one block, at most */
	double headroom_bytes;             /* of the process that has the least */
};

struct top_process {
	char name[128];       /* with its rank, and a number where several have the name */
	char program[64], rank[16];
	char *path, *recording; /* as it can be opened, and below the directory that is watched */
	uint32_t pid;
	bool is_running;      /* or may run: */
	bool is_unseen;       /* it cannot be seen from here whether it runs */
	uint64_t gpu_bytes, gpu_peak_bytes, resident_bytes, failures;
	char error[PASS_SENTENCE]; /* why it has levels only; "" */
	struct pass *pass;    /* NULL: not analysed. Only sites that rise have a slope */
	enum top_verdict verdict;
};

struct top_frame {
	uint64_t time_ns; /* CLOCK_REALTIME */
	struct top_gpu gpus[WATCH_DEVICES];
	size_t gpu_count;
	struct top_process *processes; /* the one that began last comes first */
	size_t process_count;
};

void top_take(struct top_frame *frame, const struct watch *watch);
void top_fini(struct top_frame *frame);

/* What a process's verdict is about, in words: "growing: append_kv (server.c:64) +46.0 MiB/s, GPU 0
 * is full in 1m20s". */
void top_words(const struct top_process *process, char *out, size_t bytes);
/* The index of the device's GPU; gpu_count: none. */
size_t top_gpu_of(const struct top_frame *frame, const struct top_process *process,
		    unsigned ordinal);

void top_text(FILE *out, const struct top_frame *frame, unsigned sites);
void top_json(FILE *out, const struct top_frame *frame);
extern const struct shape live_shape; /* of the document */

/* A page that asks for that document and shows it in place. */
extern const char live_page[];
