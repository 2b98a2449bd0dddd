/* SPDX-License-Identifier: Apache-2.0 */
/* Header, DEVICES and the last sample of one recording, and the files of its control group. */
#include "analysis/watch/levels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/group_kills.h"
#include "analysis/replay/run_groups.h"

/* ---- the control group ---- */

static FILE *open_in(const char *directory, const char *name)
{
	char path[600];

	if (!group_is_below_root(directory) ||
	    snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
		return NULL;
	return fopen(path, "re");
}

/* The number behind a key, or of the whole file where key is "". "max" and v1's largest number are
 * no limit. */
static uint64_t number_in(const char *directory, const char *name, const char *key)
{
	const uint64_t no_limit = (uint64_t)1 << 62;
	uint64_t number = CUF_UNKNOWN;
	FILE *file = open_in(directory, name);
	char line[160];

	while (file && number == CUF_UNKNOWN && fgets(line, sizeof line, file))
		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), "%" SCNu64, &number) != 1)
			number = CUF_UNKNOWN;
	if (file)
		fclose(file);
	return number < no_limit ? number : CUF_UNKNOWN;
}

static double pressure_in(const char *directory, const char *kind)
{
	FILE *file = open_in(directory, "memory.pressure");
	double seconds = NAN;
	char line[160];

	while (file && fgets(line, sizeof line, file)) {
		const char *total = strstr(line, "total=");
		if (total && !strncmp(line, kind, strlen(kind)))
			seconds = (double)strtoull(total + 6, NULL, 10) / 1e6;
	}
	if (file)
		fclose(file);
	return seconds;
}

/* Version 2 by its names, else version 1. Pages of files that nobody uses are dropped before the
 * kernel kills. */
struct cgroup_levels cgroup_levels(const char *directory)
{
	struct cgroup_levels out = { .some_s = NAN, .full_s = NAN };
	uint64_t inactive;

	out.bytes = number_in(directory, "memory.current", "");
	out.limit_bytes = number_in(directory, "memory.max", "");
	inactive = number_in(directory, "memory.stat", "inactive_file ");
	if (out.bytes == CUF_UNKNOWN) {
		out.bytes = number_in(directory, "memory.usage_in_bytes", "");
		out.limit_bytes = number_in(directory, "memory.limit_in_bytes", "");
		inactive = number_in(directory, "memory.stat", "total_inactive_file ");
	}
	out.working_bytes = out.bytes == CUF_UNKNOWN || inactive == CUF_UNKNOWN ?
				    CUF_UNKNOWN : subtract_to_zero(out.bytes, inactive);
	out.some_s = pressure_in(directory, "some ");
	out.full_s = pressure_in(directory, "full ");
	return out;
}

/* ---- the recording ---- */

static void read_devices(struct levels *out, const struct reader *reader)
{
	uint64_t count = least_of(reader_count(reader, CUF_SEC_DEVICES), CUF_DEVICES_MAX);

	for (uint64_t i = 0; i < count; i++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, i);

		if (!device->present)
			continue;
		out->devices[out->device_count] = *device;
		out->devices[out->device_count++].ordinal = (uint32_t)i;
	}
}

static void read_sample(struct levels *out, const struct reader *reader)
{
	uint64_t count = least_of(out->header.sample_count, reader_count(reader, CUF_SEC_TIMELINE));
	uint32_t bytes = reader->sections[CUF_SEC_TIMELINE].stride;

	memset(&out->sample, 0xff, sizeof out->sample);
	out->sample.time_ns = 0;
	if (count)
		memcpy(&out->sample, reader_at(reader, CUF_SEC_TIMELINE, count - 1),
		       bytes < sizeof out->sample ? bytes : sizeof out->sample);
}

/* The recorder samples when the program allocates, so the last sample is near the last event. */
static uint64_t last_event(const struct levels *levels)
{
	uint64_t last = levels->header.start_ns;

	if (levels->header.end_kind)
		return levels->header.end_ns;
	if (levels->sample.time_ns > last)
		last = levels->sample.time_ns;
	for (size_t i = 0; i < levels->device_count; i++)
		if (levels->devices[i].free_ns != CUF_UNKNOWN && levels->devices[i].free_ns > last)
			last = levels->devices[i].free_ns;
	return last;
}

int levels_read(struct levels *out, const char *path, const char *cgroup)
{
	struct reader *reader;
	int code = reader_open_entry(path, &reader, NULL);

	if (code)
		return code;
	memset(out, 0, sizeof *out);
	out->header = reader->header;
	out->file_bytes = reader->bytes;
	out->life = out->header.end_kind ? LIFE_GONE : process_life(reader);
	read_devices(out, reader);
	read_sample(out, reader);
	out->start_ns = reader_realtime(reader, out->header.start_ns);
	out->last_event_ns = reader_realtime(reader, last_event(out));
	out->cgroup = cgroup_levels(out->life == LIFE_GONE ? "" : cgroup);
	reader_close(reader);
	return 0;
}

/* ---- identity ---- */

/* As the kernel calls the main thread now; false: it cannot be seen, or another process has its
 * pid. */
static bool name_now(const struct reader *reader, char *name, size_t bytes)
{
	char path[40];
	FILE *file;

	if (!process_is_here(&reader->header) || reader->header.end_kind)
		return false;
	snprintf(path, sizeof path, "/proc/%u/comm", reader->header.pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)bytes, file))
		*name = 0;
	if (file)
		fclose(file);
	name[strcspn(name, "\n")] = 0;
	return *name;
}

static bool name_recorded(const struct reader *reader, char *name, size_t bytes)
{
	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_THREADS); i++) {
		const struct cuf_thread *thread = reader_at(reader, CUF_SEC_THREADS, i);
		if (thread->tid != reader->header.pid || !*thread->name)
			continue;
		snprintf(name, bytes, "%.*s", (int)sizeof thread->name, thread->name);
		return true;
	}
	return false;
}

/* A pid counts only in its own namespace: a stranger's name would be wrong. The kernel cuts names
 * at 15 characters. */
static void find_name(const struct reader *reader, const char *exe, char *name, size_t bytes)
{
	const char *program = exe ? path_base_name(exe) : "?";
	enum { KERNEL_NAME = 15 };

	if (!name_now(reader, name, bytes) && !name_recorded(reader, name, bytes))
		snprintf(name, bytes, "%s", program);
	if (strlen(name) == KERNEL_NAME && !strncmp(name, program, KERNEL_NAME))
		snprintf(name, bytes, "%s", program);
}

int identity_read(struct identity *out, const char *path, struct reader_error *error)
{
	const char *exe, *rank, *host, *cgroup;
	char name[64] = "";
	struct reader *reader;
	struct arena *arena;
	struct meta meta;
	int code = reader_open_entry(path, &reader, error);

	if (code)
		return code;
	arena = arena_new();
	meta_read(&meta, reader, arena);
	*out = (struct identity){ .pid = reader->header.pid,
				  .start_ns = reader_realtime(reader, reader->header.start_ns) };
	exe = meta_text(&meta, CUF_META_EXE);
	host = meta_text(&meta, CUF_META_HOSTNAME);
	cgroup = meta_text(&meta, CUF_META_CGROUP);
	rank = rank_of_texts(meta.texts, meta.text_count);
	find_name(reader, exe, name, sizeof name);
	clean_terminal(out->name, sizeof out->name, name, false);
	clean_terminal(out->host, sizeof out->host, host ? host : "", false);
	clean_terminal(out->rank, sizeof out->rank, rank ? rank : "", false);
	snprintf(out->cgroup, sizeof out->cgroup, "%s",
		 cgroup && is_this_boot(&reader->header) ? cgroup : "");
	arena_free(arena);
	reader_close(reader);
	return 0;
}
