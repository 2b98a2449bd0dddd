/* SPDX-License-Identifier: Apache-2.0 */
/* Polls a few words of each recording; a new incident of a device is the occasion. */
#include "analysis/cmd/run/tenants_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "analysis/cmd/run/nvml.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/recording/reader.h"
#include "analysis/recording/recording_append.h"
#include "analysis/base/xalloc.h"

enum { FILES_MAX = 256, READINGS_MAX = 64 };
#define RESCAN_NS 500000000ull
#define SPACING_NS 1000000000ull
#define SETTLE_NS 2000000000ull /* a file becomes a recording only when all of its content is there */

struct watched { char *path; int fd; uint32_t pid; uint64_t seen, next_ns, spacing_ns; };
struct kept { const struct watched *of; struct cuf_gpu_reading *reading; };

struct tenants_watch {
	const char *directory;
	unsigned depth;
	uint64_t since_ns, next_scan_ns;
	struct timespec changed;          /* of the directory, at the last scan */
	uint64_t settled_ns;
	struct watched files[FILES_MAX]; size_t count;
	struct kept kept[READINGS_MAX]; size_t kept_count;
	bool off;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The last word counts, as the recorder reads it. */
static bool is_refused(const char *options)
{
	bool refused = false;
	for (const char *at = options; at && (at = strstr(at, "nvml=")); at += 5)
		if (at == options || at[-1] == ':')
			refused = at[5] == '0';
	return refused;
}

struct tenants_watch *tenants_watch_new(const char *directory, unsigned depth, uint64_t since_ns, const char *options)
{
	struct tenants_watch *watch;
	if (is_refused(options))
		return NULL;
	watch = xalloc_zeroed(1, sizeof *watch);
	watch->directory = directory;
	watch->depth = depth;
	watch->since_ns = since_ns;
	return watch;
}

static bool is_known(const struct tenants_watch *watch, const char *path)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!strcmp(watch->files[i].path, path))
			return true;
	return false;
}

static void scan(struct tenants_watch *watch)
{
	struct recordings list = { 0 };
	recordings_scan(&list, watch->directory, watch->depth, watch->since_ns);
	for (size_t i = 0; i < list.count && watch->count < FILES_MAX; i++) {
		int fd = is_known(watch, list.files[i].path) ? -1 : open(list.files[i].path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0)
			watch->files[watch->count++] = (struct watched){ .path = xalloc_string(list.files[i].path), .fd = fd, .pid = list.files[i].pid };
	}
	recordings_free(&list);
}

/* A new file shows in its directory's time, but not in that of the directories above. */
static void scan_if_due(struct tenants_watch *watch, uint64_t now)
{
	struct stat st;
	if (now < watch->next_scan_ns || stat(watch->directory, &st))
		return;
	if (st.st_mtim.tv_sec != watch->changed.tv_sec || st.st_mtim.tv_nsec != watch->changed.tv_nsec)
		watch->settled_ns = now + SETTLE_NS;
	else if (!watch->depth && now > watch->settled_ns)
		return;
	watch->changed = st.st_mtim;
	watch->next_scan_ns = now + RESCAN_NS;
	scan(watch);
}

static bool is_gone(uint32_t pid) { return kill((pid_t)pid, 0) && errno == ESRCH; }

static void ask(struct tenants_watch *watch, struct watched *file, const struct cuf_device *device, uint64_t incident)
{
	struct cuf_gpu_reading *reading;
	if (watch->off || watch->kept_count == READINGS_MAX)
		return;
	reading = xalloc_zeroed(1, sizeof *reading);
	if (!nvml_ask(device, reading)) {
		watch->off = true;
		free(reading);
		return;
	}
	watch->off = reading->head.failed == CUF_NVML_nvmlInit_v2; /* it will not get better */
	reading->head.meta.number = incident;
	reading->head.meta.bytes = (uint32_t)cuf_gpu_reading_bytes(reading);
	if (is_gone(file->pid))
		reading->head.flags |= CUF_GPU_PROCESSES_AFTER;
	watch->kept[watch->kept_count++] = (struct kept){ file, reading };
}

/* The new incidents of one recording: of each device the last. False: the newest is in the making still. */
static bool look_into(struct tenants_watch *watch, struct watched *file, uint64_t count)
{
	uint64_t last[CUF_DEVICES_MAX] = { 0 };
	struct cuf_incident incident;
	struct reader *reader;
	if (reader_open(file->path, &reader, NULL))
		return false;
	if (!reader_incident(reader, count, &incident) && !is_gone(file->pid)) {
		reader_close(reader);
		return false;
	}
	for (uint64_t number = count; number > file->seen && number + CUF_DEVICES_MAX > count; number--)
		if (reader_incident(reader, number, &incident) && incident.device < CUF_DEVICES_MAX && !last[incident.device])
			last[incident.device] = number;
	for (unsigned ordinal = 0; ordinal < CUF_DEVICES_MAX; ordinal++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, ordinal);
		if (last[ordinal] && device && device->present)
			ask(watch, file, device, last[ordinal]);
	}
	file->seen = count;
	reader_close(reader);
	return true;
}

static void look(struct tenants_watch *watch, bool last)
{
	uint64_t now = now_ns(), count;
	for (size_t i = 0; i < watch->count && !watch->off; i++) {
		struct watched *file = &watch->files[i];
		if (pread(file->fd, &count, sizeof count, offsetof(struct cuf_header, incident_count)) != sizeof count || count <= file->seen || (now < file->next_ns && !last))
			continue;
		if (!look_into(watch, file, count))
			continue;
		file->spacing_ns = file->spacing_ns ? file->spacing_ns * 2 : SPACING_NS;
		file->next_ns = now + file->spacing_ns;
	}
}

bool tenants_watch_tick(void *context)
{
	struct tenants_watch *watch = context;
	scan_if_due(watch, now_ns());
	look(watch, false);
	return !watch->off;
}

static bool is_of_run(const struct recordings *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run && !strcmp(list->files[i].path, path))
			return true;
	return false;
}

static void write_down(const struct tenants_watch *watch, const struct recordings *list)
{
	for (size_t i = 0; i < watch->kept_count; i++) {
		const struct kept *k = &watch->kept[i];
		/* who lives writes to its recording itself */
		if (is_gone(k->of->pid) && is_of_run(list, k->of->path) && recording_append_record(k->of->path, &k->reading->head.meta) < 0)
			say_error("cannot note in '%s' who else held the device: %s", k->of->path, strerror(errno));
	}
}

void tenants_watch_end(struct tenants_watch *watch, const struct recordings *list)
{
	if (!watch)
		return;
	if (!watch->off) {
		scan(watch);
		look(watch, true);
	}
	write_down(watch, list);
	for (size_t i = 0; i < watch->count; i++) {
		close(watch->files[i].fd);
		free(watch->files[i].path);
	}
	for (size_t i = 0; i < watch->kept_count; i++)
		free(watch->kept[i].reading);
	free(watch);
}
