/* SPDX-License-Identifier: Apache-2.0 */
/* Polls the incident counter of each recording, and reads NVML when it has risen. */
#include "analysis/cmd/run/gpu_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clock.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/recording_append.h"
#include "analysis/cmd/target/ask.h"
#include "analysis/recording/reader.h"
#include "interpose/abi/nvml.h"

/*
 * Reads NVML through ask.h: a driver that hangs or crashes cannot affect the caller, and a query
 * takes at most two seconds.
 */

/* The child may have been killed while it wrote. Counts are checked before they are used. */
static bool is_complete_answer(const struct cuf_gpu_reading *reading, ssize_t bytes)
{
	return bytes >= (ssize_t)offsetof(struct cuf_gpu_reading, processes) &&
	       reading->head.stored_count <= CUF_GPU_PROCESSES_MAX &&
	       bytes == (ssize_t)cuf_gpu_reading_bytes(reading);
}

/* The reading of a driver that did not answer in time. */
static void note_timeout(struct cuf_gpu_reading *reading)
{
	*reading = (struct cuf_gpu_reading){ .head = {
		.meta = { .type = CUF_META_GPU_PROCESSES },
		.failed = CUF_NVML_nvmlInit_v2,
		.result = CUF_NVML_TIMEOUT,
		.total_bytes = CUF_UNKNOWN,
		.used_bytes = CUF_UNKNOWN,
		.free_bytes = CUF_UNKNOWN,
		.reserved_bytes = CUF_UNKNOWN,
	} };
}

/*
 * False: there is no NVML here. Refused calls, and no answer in time, are noted in the reading.
 * Times are CLOCK_MONOTONIC.
 */
static bool nvml_query(const struct cuf_device *device, struct cuf_gpu_reading *reading)
{
	const struct question question = { { "nvml" }, device, sizeof *device };
	ssize_t bytes = ask(&question, reading, sizeof *reading);

	if (bytes < 0)
		note_timeout(reading);
	else if (!is_complete_answer(reading, bytes))
		return false;
	reading->head.meta.time_ns = clock_ns(CLOCK_MONOTONIC);
	reading->head.device = device->ordinal;
	reading->head.flags |= CUF_GPU_PROCESSES_BY_RUN;
	return true;
}

enum { FILES_MAX = 256, READINGS_MAX = 64 };

#define RESCAN_NS 500000000ull
#define SPACING_NS 1000000000ull
/* A file becomes a recording when all of its content is there: rescan for this long afterwards. */
#define SETTLE_NS 2000000000ull

/* One recording. Its descriptor stays open, so that a poll is one pread. */
struct watched {
	char *path;
	int fd;
	uint32_t pid;
	uint64_t seen;             /* incidents that were handled */
	uint64_t next_ns;          /* no reading before */
	uint64_t spacing_ns;       /* doubles with each reading */
};

struct kept_reading {
	const struct watched *file;
	struct cuf_gpu_reading *reading;
};

struct gpu_watch {
	const char *directory;
	unsigned depth;
	uint64_t since_ns, next_scan_ns;
	struct timespec changed;   /* mtime of the directory at the last scan */
	uint64_t settled_ns;
	struct watched files[FILES_MAX];
	size_t count;
	struct kept_reading kept[READINGS_MAX];
	size_t kept_count;
	bool off;                  /* there is no NVML, or it does not work */
};

/* The last nvml= in the options decides, as in the recorder. */
static bool is_disabled(const char *options)
{
	static const char key[] = "nvml=";
	bool disabled = false;

	if (!options)
		return false;
	for (const char *at = strstr(options, key); at; at = strstr(at + 1, key))
		if (at == options || at[-1] == ':')
			disabled = at[sizeof key - 1] == '0';
	return disabled;
}

/* NULL when the user switched readings off. The strings are borrowed. */
struct gpu_watch *gpu_watch_new(const char *directory, unsigned depth, uint64_t since_ns,
				const char *options)
{
	struct gpu_watch *watch;

	if (is_disabled(options))
		return NULL;
	watch = xalloc_zeroed(1, sizeof *watch);
	watch->directory = directory;
	watch->depth = depth;
	watch->since_ns = since_ns;
	return watch;
}

/* ---- finding recordings ---- */

/* Paths are compared, since a path has one recording during a run. */
static bool is_watched(const struct gpu_watch *watch, const char *path)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!strcmp(watch->files[i].path, path))
			return true;
	return false;
}

/* O_NOFOLLOW: a symbolic link in the directory may point anywhere. */
static void scan_directory(struct gpu_watch *watch)
{
	struct recordings list = { 0 };

	recordings_scan(&list, watch->directory, watch->depth, watch->since_ns);
	for (size_t i = 0; i < list.count && watch->count < FILES_MAX; i++) {
		int fd;
		if (is_watched(watch, list.files[i].path))
			continue;
		fd = open(list.files[i].path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		watch->files[watch->count++] = (struct watched){
			.path = xalloc_string(list.files[i].path),
			.fd = fd,
			.pid = list.files[i].pid,
		};
	}
	recordings_free(&list);
}

/*
 * A new file changes the mtime of its directory, but not of the directories above. So a quiet
 * directory is scanned again only when recordings may be in directories below it.
 */
static void scan_if_due(struct gpu_watch *watch, uint64_t now)
{
	struct stat st;

	if (now < watch->next_scan_ns || stat(watch->directory, &st))
		return;
	if (st.st_mtim.tv_sec != watch->changed.tv_sec ||
	    st.st_mtim.tv_nsec != watch->changed.tv_nsec)
		watch->settled_ns = now + SETTLE_NS;
	else if (!watch->depth && now > watch->settled_ns)
		return;
	watch->changed = st.st_mtim;
	watch->next_scan_ns = now + RESCAN_NS;
	scan_directory(watch);
}

/* ---- reading NVML ---- */

/* EPERM means that the process exists and belongs to another user. */
/* After a failed start of NVML there is no second attempt. Readings are kept in memory and appended
 * at the end, because only the recorder writes to a recording while its process runs. */
static void read_device(struct gpu_watch *watch, const struct watched *file,
			const struct cuf_device *device, uint64_t incident)
{
	struct cuf_gpu_reading *reading;

	if (watch->off || watch->kept_count == READINGS_MAX)
		return;
	reading = xalloc_zeroed(1, sizeof *reading);
	if (!nvml_query(device, reading)) {
		watch->off = true;
		free(reading);
		return;
	}
	watch->off = reading->head.failed == CUF_NVML_nvmlInit_v2; /* it will fail again */
	reading->head.meta.number = incident;
	reading->head.meta.bytes = (uint32_t)cuf_gpu_reading_bytes(reading);
	if (process_has_ended(file->pid))
		reading->head.flags |= CUF_GPU_PROCESSES_AFTER;
	watch->kept[watch->kept_count++] = (struct kept_reading){ file, reading };
}

/* The last new incident of each device; 0: none. */
static void find_last_incidents(const struct reader *reader, uint64_t seen, uint64_t count,
				uint64_t last[CUF_DEVICES_MAX])
{
	struct cuf_incident incident;

	/* each device needs one, so the newest CUF_DEVICES_MAX are enough */
	for (uint64_t number = count; number > seen && number + CUF_DEVICES_MAX > count; number--) {
		if (!reader_incident(reader, number, &incident) ||
		    incident.device >= CUF_DEVICES_MAX)
			continue;
		if (!last[incident.device])
			last[incident.device] = number;
	}
}

/* Reads NVML for each device with a new incident. False: the newest incident is incomplete. */
static bool handle_incidents(struct gpu_watch *watch, struct watched *file, uint64_t count)
{
	uint64_t last[CUF_DEVICES_MAX] = { 0 };
	struct cuf_incident incident;
	struct reader *reader;

	if (reader_open(file->path, &reader, NULL))
		return false;
	if (!reader_incident(reader, count, &incident) && !process_has_ended(file->pid)) {
		reader_close(reader);
		return false;
	}
	find_last_incidents(reader, file->seen, count, last);
	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, ordinal);
		if (last[ordinal] && device && device->present)
			read_device(watch, file, device, last[ordinal]);
	}
	file->seen = count;
	reader_close(reader);
	return true;
}

/* ignore_spacing: this is the last poll. */
static void poll_recordings(struct gpu_watch *watch, bool ignore_spacing)
{
	const off_t counter = offsetof(struct cuf_header, incident_count);
	uint64_t now = clock_ns(CLOCK_MONOTONIC), count;

	for (size_t i = 0; i < watch->count && !watch->off; i++) {
		struct watched *file = &watch->files[i];
		if (pread(file->fd, &count, sizeof count, counter) != sizeof count)
			continue;
		if (count <= file->seen || (now < file->next_ns && !ignore_spacing))
			continue;
		if (!handle_incidents(watch, file, count))
			continue;
		file->spacing_ns = file->spacing_ns ? file->spacing_ns * 2 : SPACING_NS;
		file->next_ns = now + file->spacing_ns;
	}
}

/* Returns false when no further reading can succeed. Then the supervisor waits without a
 * timeout. */
bool gpu_watch_tick(void *context)
{
	struct gpu_watch *watch = context;

	scan_if_due(watch, clock_ns(CLOCK_MONOTONIC));
	poll_recordings(watch, false);
	return !watch->off;
}

/* ---- the end ---- */

/* The directory may contain recordings of others that were made meanwhile. */
static bool is_of_run(const struct recordings *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run && !strcmp(list->files[i].path, path))
			return true;
	return false;
}

/* A process that still runs writes to its file, so its readings are dropped. */
static void append_readings(const struct gpu_watch *watch, const struct recordings *list)
{
	for (size_t i = 0; i < watch->kept_count; i++) {
		const struct kept_reading *kept = &watch->kept[i];
		const char *path = kept->file->path;
		if (!process_has_ended(kept->file->pid) || !is_of_run(list, path))
			continue;
		if (recording_append_record(path, &kept->reading->head.meta) < 0)
			say_error("cannot write GPU processes to '%s': %s", path, strerror(errno));
	}
}

/* The last poll finds incidents of the command's last moments. Frees the watch. */
void gpu_watch_end(struct gpu_watch *watch, const struct recordings *list)
{
	if (!watch)
		return;
	if (!watch->off) {
		scan_directory(watch);
		poll_recordings(watch, true);
	}
	append_readings(watch, list);
	for (size_t i = 0; i < watch->count; i++) {
		close(watch->files[i].fd);
		free(watch->files[i].path);
	}
	for (size_t i = 0; i < watch->kept_count; i++)
		free(watch->kept[i].reading);
	free(watch);
}
