/* SPDX-License-Identifier: Apache-2.0 */
/* Scans directories for recordings, and relates them by parent process and by launcher. */
#include "analysis/cmd/run/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/run_groups.h"

/* ---- scanning ---- */

static uint32_t launcher_of(const struct reader *reader)
{
	struct arena *arena = arena_new();
	struct meta meta;
	unsigned long pid;

	meta_read(&meta, reader, arena);
	pid = launcher_of_texts(meta.texts, meta.text_count);
	arena_free(arena);
	return pid <= UINT32_MAX ? (uint32_t)pid : 0;
}

/* A file that cannot be opened as a recording is ignored. It may be incomplete, and a later scan
 * finds it. */
static void add_file(struct recordings *list, const char *path, uint64_t since_ns)
{
	const struct cuf_header *header;
	struct reader *reader;

	if (reader_open(path, &reader, NULL))
		return;
	header = &reader->header;
	if (header->start_realtime_ns < since_ns) {
		list->older++;
	} else {
		xalloc_grow(&list->files, list->count, &list->room, sizeof *list->files);
		list->files[list->count++] = (struct recording_file){
			.path = xalloc_string(path),
			.pid = header->pid,
			.ppid = header->ppid,
			.start_ns = header->start_realtime_ns,
			.bytes = reader->bytes,
			.incident_count = header->incident_count,
			.saw_cuda = header->first_cuda_ns != 0,
			.launcher = launcher_of(reader),
			.replaced = header->end_kind == CUF_END_EXEC,
			.every_host_event = header->options_host_mode == CUF_HOST_FULL,
		};
	}
	reader_close(reader);
}

/* -o allows any name, so the magic number decides. Foreign files cost one page. */
static bool has_magic(int directory, const char *name)
{
	char magic[sizeof CUF_MAGIC - 1];
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool same;

	if (fd < 0)
		return false;
	same = read(fd, magic, sizeof magic) == sizeof magic &&
	       !memcmp(magic, CUF_MAGIC, sizeof magic);
	close(fd);
	return same;
}

/* Others that begin with a dot are read: the user may have named a recording so. */
static bool is_dot_or_dot_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Directories are followed to the depth that a file name pattern may create. Symbolic links are not
 * followed. */
void recordings_scan(struct recordings *list, const char *directory, unsigned depth,
		     uint64_t since_ns)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[PATH_MAX];
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		if (is_dot_or_dot_dot(entry->d_name) || length >= (int)sizeof path)
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && depth)
			recordings_scan(list, path, depth - 1, since_ns);
		else if (S_ISREG(st.st_mode) && has_magic(dirfd(dir), entry->d_name))
			add_file(list, path, since_ns);
	}
	if (dir)
		closedir(dir);
}

/* The list may be filled again afterwards. */
void recordings_free(struct recordings *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->files[i].path);
	free(list->files);
	memset(list, 0, sizeof *list);
}

/* ---- which belong together ---- */

/* By the launcher's id in the options, which survives a parent that exits, else by the chain of
 * parents. */
static bool is_member(const struct recordings *list, const struct recording_file *file,
		      uint32_t root, uint32_t launcher)
{
	if (file->pid == root || (launcher && file->launcher == launcher))
		return true;
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run && list->files[i].pid == file->ppid)
			return true;
	return false;
}

/* Returns how many recordings belong to the run. pid is the command's, launcher this process's. */
size_t recordings_mark_run(struct recordings *list, uint32_t pid, uint32_t launcher)
{
	size_t marked = 0;

	/* a child may precede its parent in the list: repeat until nothing is added */
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

/*
 * The recording of file's parent process; NULL: it was not recorded. Pids are reused: among several
 * recordings of that pid, the youngest that is not younger than file is the parent's.
 */
static const struct recording_file *parent_of(const struct recordings *list,
					      const struct recording_file *file)
{
	const struct recording_file *parent = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *other = &list->files[i];
		if (other == file || other->pid != file->ppid || other->pid == file->pid)
			continue;
		if (other->start_ns > file->start_ns)
			continue;
		if (!parent || other->start_ns > parent->start_ns)
			parent = other;
	}
	return parent;
}

/* Goes up from the newest recording to the first recorded ancestor, and marks what belongs to it.
 * The number of steps is limited, since reused pids could form a circle. */
size_t recordings_mark_newest_run(struct recordings *list)
{
	const struct recording_file *newest = NULL, *root, *parent;

	for (size_t i = 0; i < list->count; i++)
		if (!newest || list->files[i].start_ns > newest->start_ns)
			newest = &list->files[i];
	if (!newest)
		return 0;
	root = newest;
	for (size_t steps = 0; steps < list->count; steps++) {
		parent = parent_of(list, root);
		if (!parent)
			break;
		root = parent;
	}
	return recordings_mark_run(list, root->pid, newest->launcher);
}

/* ---- chains of exec ---- */

/* The last program of a process: the youngest recording of its pid that was not replaced. NULL when
 * the process ended in a program that was not recorded. */
static struct recording_file *last_program(const struct recordings *list,
					   const struct recording_file *of)
{
	struct recording_file *last = NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct recording_file *file = &list->files[i];
		if (!file->of_run || file->pid != of->pid || file->replaced)
			continue;
		if (file->start_ns > of->start_ns && (!last || file->start_ns > last->start_ns))
			last = file;
	}
	return last;
}

/* A program that only starts another one, such as a shell or env. What it recorded explains
 * nothing. */
static bool is_droppable(const struct recording_file *file)
{
	return file->of_run && file->replaced && !file->saw_cuda && !file->incident_count &&
	       !file->every_host_event;
}

/* Names of one pid differ by a number before ".cuf": the shorter one was first. */
static bool is_first_name(const char *name, const char *of)
{
	size_t stem = strlen(name) - (sizeof ".cuf" - 1);

	return strlen(name) < strlen(of) && !strncmp(name, of, stem);
}

/* Removes the file, or replaces it by the last program's recording in one step. 0 or -1. */
static int drop_file(struct recording_file *file, struct recording_file *last)
{
	char *path;

	if (!is_first_name(file->path, last->path))
		return unlink(file->path);
	if (rename(last->path, file->path))
		return -1;
	path = last->path;
	last->path = file->path;
	file->path = path;
	return 0;
}

/* Returns how many were removed. The list is compacted only at the end, because pointers into it
 * are in use before. */
size_t recordings_drop_replaced(struct recordings *list)
{
	size_t kept = 0, dropped = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct recording_file *file = &list->files[i], *last;
		if (!is_droppable(file))
			continue;
		last = last_program(list, file);
		if (!last || drop_file(file, last))
			continue;
		file->of_run = false;
		file->bytes = 0; /* marks it for the loop below */
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

/* ---- which to show ---- */

/* Failed requests count most, then use of a GPU, then being the last program of its process. */
static unsigned interest_of(const struct recording_file *file)
{
	unsigned interest = 0;

	if (file->incident_count)
		interest += 4;
	if (file->saw_cuda)
		interest += 2;
	if (!file->replaced)
		interest += 1;
	return interest;
}

/* Equally interesting: the older one is the parent, which the user knows. */
static bool is_better_file(const struct recording_file *file, const struct recording_file *best)
{
	if (interest_of(file) != interest_of(best))
		return interest_of(file) > interest_of(best);
	return file->start_ns < best->start_ns;
}

const struct recording_file *recordings_best(const struct recordings *list)
{
	const struct recording_file *best = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *file = &list->files[i];
		if (file->of_run && (!best || is_better_file(file, best)))
			best = file;
	}
	return best;
}

/* Relative to the current directory if the file is below it, and quoted for a shell. */
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

bool process_has_ended(uint32_t pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}
