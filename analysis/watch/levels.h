/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels of one recording: what can be read in microseconds, at each scrape. Nothing is
 * analysed. The file is opened by its name each time, so that a file which was trimmed or replaced
 * is followed.
 *
 * Contract: levels_read returns 0 or a negative reader error code; *out is then unchanged. The
 * recording is hostile. Times are CLOCK_REALTIME; unknown is CUF_UNKNOWN.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/reader.h"
#include "analysis/replay/process_life.h"
#include "interpose/abi/format.h"

/* Of the control group, as its files are here; CUF_UNKNOWN: not visible, or no limit. */
struct cgroup_levels {
	uint64_t bytes, working_bytes, limit_bytes;
	double some_s, full_s; /* memory.pressure; NAN */
};

struct cgroup_levels cgroup_levels(const char *directory);

struct levels {
	struct cuf_header header;
	enum process_life life;      /* LIFE_GONE with an end record, too */
	struct cuf_device devices[CUF_DEVICES_MAX]; /* those present, by ordinal */
	size_t device_count;
	struct cuf_sample sample;    /* the last one; time_ns 0: none */
	struct cgroup_levels cgroup;
	uint64_t start_ns, last_event_ns;
	uint64_t file_bytes;
};

/* cgroup: the directory that the recording names, "" where there is none. */
int levels_read(struct levels *out, const char *path, const char *cgroup);

/* What the recording has once about its process. */
struct identity {
	char name[64];      /* of the main thread, else of the program */
	char host[64], rank[16], cgroup[512];
	uint32_t pid;
	uint64_t start_ns;
};
int identity_read(struct identity *out, const char *path, struct reader_error *error);
