/* SPDX-License-Identifier: Apache-2.0 */
/* Scans directories for recordings and groups them by parent and child. */
#include "analysis/cmd/run/recordings.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"

/* `cuflight run` leaves its own pid in the options that all its descendants inherit. */
static uint32_t launcher_of(const struct reader *reader)
{
	static const char variable[] = "CUFLIGHT_OPTIONS=";
	struct arena *arena = arena_new();
	struct meta meta;
	unsigned long pid = 0;
	meta_read(&meta, reader, arena);
	for (size_t i = 0; i < meta.text_count; i++) {
		const char *start;
		if (meta.texts[i].type != CUF_META_ENV || strncmp(meta.texts[i].text, variable, sizeof variable - 1) != 0)
			continue;
		for (start = meta.texts[i].text; (start = strstr(start, "start=")); start++)
			pid = start[-1] == '=' || start[-1] == ':' ? strtoul(start + 6, NULL, 10) : pid;
	}
	arena_free(arena);
	return pid > 1 && pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

static void add_file(struct recordings *list, const char *path, uint64_t since_ns)
{
	struct reader *reader;
	if (reader_open(path, &reader, NULL))
		return;
	if (reader->header.start_realtime_ns < since_ns) {
		list->older++;
	} else {
		xalloc_grow(&list->files, list->count, &list->room, sizeof *list->files);
		list->files[list->count++] = (struct recording_file){
			.path = xalloc_string(path), .pid = reader->header.pid, .ppid = reader->header.ppid,
			.start_ns = reader->header.start_realtime_ns, .bytes = reader->bytes,
			.incident_count = reader->header.incident_count, .saw_cuda = reader->header.first_cuda_ns != 0,
			.launcher = launcher_of(reader), .replaced = reader->header.end_kind == CUF_END_EXEC,
			.every_host_event = reader->header.options_host_mode == CUF_HOST_FULL,
		};
	}
	reader_close(reader);
}

/* Any name may be a recording's (-o names it); the magic number tells. Big foreign files cost one page. */
static bool starts_as_recording(int directory, const char *name)
{
	char magic[sizeof CUF_MAGIC - 1];
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, CUF_MAGIC, sizeof magic);
	if (fd >= 0)
		close(fd);
	return is;
}

void recordings_scan(struct recordings *list, const char *directory, unsigned depth, uint64_t since_ns)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[PATH_MAX];
	while (dir && (entry = readdir(dir))) {
		struct stat st;
		if (entry->d_name[0] == '.' && (!entry->d_name[1] || (entry->d_name[1] == '.' && !entry->d_name[2])))
			continue;
		if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && depth)
			recordings_scan(list, path, depth - 1, since_ns);
		else if (S_ISREG(st.st_mode) && starts_as_recording(dirfd(dir), entry->d_name))
			add_file(list, path, since_ns);
	}
	if (dir)
		closedir(dir);
}

void recordings_free(struct recordings *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->files[i].path);
	free(list->files);
	memset(list, 0, sizeof *list);
}

static bool is_member(const struct recordings *list, const struct recording_file *file, uint32_t root, uint32_t launcher)
{
	if (file->pid == root || (launcher && file->launcher == launcher))
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run && list->files[i].pid == file->ppid)
			return true;
	return false;
}

size_t recordings_mark_run(struct recordings *list, uint32_t pid, uint32_t launcher)
{
	size_t marked = 0;
	for (bool changed = true; changed; ) {
		changed = false;
		for (size_t i = 0; i < list->count; i++) {
			struct recording_file *file = &list->files[i];
			if (file->of_run || !is_member(list, file, pid, launcher))
				continue;
			file->of_run = changed = true;
			marked++;
		}
	}
	return marked;
}

/* The recording of file's parent process, made before it; NULL: not recorded. A pid may have been used before: the latest
 * that is not younger counts. */
static const struct recording_file *parent_of(const struct recordings *list, const struct recording_file *file)
{
	const struct recording_file *parent = NULL;
	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *other = &list->files[i];
		if (other != file && other->pid == file->ppid && other->pid != file->pid && other->start_ns <= file->start_ns &&
		    (!parent || other->start_ns > parent->start_ns))
			parent = other;
	}
	return parent;
}

size_t recordings_mark_newest_run(struct recordings *list)
{
	const struct recording_file *newest = NULL, *root, *parent;
	for (size_t i = 0; i < list->count; i++)
		if (!newest || list->files[i].start_ns > newest->start_ns)
			newest = &list->files[i];
	if (!newest)
		return 0;
	root = newest;
	for (size_t steps = 0; steps < list->count && (parent = parent_of(list, root)); steps++)
		root = parent;
	return recordings_mark_run(list, root->pid, newest->launcher);
}

static unsigned interest(const struct recording_file *file)
{
	return (file->incident_count ? 4 : 0) + (file->saw_cuda ? 2 : 0) + (file->replaced ? 0 : 1);
}

/* The last image of a process: the youngest recording of its pid that was not replaced. */
static struct recording_file *last_image(const struct recordings *list, const struct recording_file *of)
{
	struct recording_file *last = NULL;
	for (size_t i = 0; i < list->count; i++) {
		struct recording_file *file = &list->files[i];
		if (file->of_run && file->pid == of->pid && !file->replaced && file->start_ns > of->start_ns && (!last || file->start_ns > last->start_ns))
			last = file;
	}
	return last;
}

static bool is_droppable(const struct recording_file *file)
{
	return file->of_run && file->replaced && !file->saw_cuda && !file->incident_count && !file->every_host_event;
}

size_t recordings_drop_replaced(struct recordings *list)
{
	size_t kept = 0, dropped = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct recording_file *file = &list->files[i], *last = is_droppable(file) ? last_image(list, file) : NULL;
		/* the shorter name was the first one: rename takes its place and removes it in one step */
		bool better = last && strlen(file->path) < strlen(last->path) && !strncmp(file->path, last->path, strlen(file->path) - sizeof ".cuf" + 1);
		if (!last || (better ? rename(last->path, file->path) : unlink(file->path)))
			continue;
		if (better) {
			char *path = last->path;
			last->path = file->path;
			file->path = path;
		}
		file->of_run = false;
		file->bytes = 0; /* gone */
		dropped++;
	}
	for (size_t i = 0; i < list->count; i++) {
		if (list->files[i].bytes)
			list->files[kept++] = list->files[i];
		else
			free(list->files[i].path);
	}
	list->count = kept;
	return dropped;
}

const struct recording_file *recordings_best(const struct recordings *list)
{
	const struct recording_file *best = NULL;
	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *file = &list->files[i];
		if (!file->of_run)
			continue;
		if (!best || interest(file) > interest(best) || (interest(file) == interest(best) && file->start_ns < best->start_ns))
			best = file;
	}
	return best;
}

void recordings_show_path(const char *path, char *out, size_t bytes)
{
	char here[PATH_MAX];
	size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;

	if (length > 1 && !strncmp(path, here, length)) {
		if (!path[length])
			path = ".";
		else if (path[length] == '/' && path[length + 1])
			path += length + 1;
	}
	path_quote_shell(path, out, bytes);
}
