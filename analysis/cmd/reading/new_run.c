/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of all recordings, by run; and a file with the runs that were given out. */
#include "analysis/cmd/reading/new_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/replay/run.h"
#include "analysis/watch/levels.h"

/* Prints which recording was chosen, because nobody named it. */
static void print_choice(const char *path, size_t processes, bool whole_directory)
{
	char shown[PATH_MAX];

	recordings_show_path(path, shown, sizeof shown);
	if (processes > 1 && !whole_directory)
		say_info("reading %s, one of %zu processes of the newest run here", shown,
			 processes);
	else
		say_info("reading %s, the newest run here", shown);
}

int newest_run(char *path, size_t bytes)
{
	struct destination destination;
	struct recordings list = { 0 };
	const struct recording_file *best;
	size_t processes;
	bool whole;

	if (destination_set(&destination, NULL)) {
		say_error("cannot read the current directory: %s", strerror(errno));
		return -1;
	}
	recordings_scan(&list, destination.directory, destination.depth, 0);
	processes = recordings_mark_newest_run(&list);
	best = recordings_best(&list);
	if (best) {
		whole = processes > 1 && processes == list.count && !destination.depth;
		snprintf(path, bytes, "%s", best->path);
		if (whole)
			snprintf(path, bytes, "%s", destination.directory);
		print_choice(path, processes, whole);
	} else {
		say_error("no recording in %s; record one with 'cuflight run -- COMMAND', "
			  "or name a file or directory", destination.directory);
	}
	recordings_free(&list);
	return best ? 0 : -1;
}

/* A run is known by its first process. */
struct ended_run {
	uint64_t start_ns, end_ns;
	uint32_t pid;
	bool is_seen, goes_on, was_given;
};

static void look_at(struct ended_run *run, const char *path)
{
	struct levels levels;

	if (levels_read(&levels, path, ""))
		return;
	if (!run->is_seen) {
		run->start_ns = levels.start_ns;
		run->pid = levels.header.pid;
	}
	run->is_seen = true;
	if (levels.life != LIFE_GONE)
		run->goes_on = true;
	if (levels.last_event_ns != CUF_UNKNOWN && levels.last_event_ns > run->end_ns)
		run->end_ns = levels.last_event_ns;
}

/* ---- the file ---- */

#define GIVEN ".cuflight-reported"

bool new_run_forget(const char *directory)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool has_others = false;
	DIR *dir = opendir(directory);

	while (dir && (entry = readdir(dir)))
		has_others |= strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			      strcmp(entry->d_name, GIVEN);
	if (dir)
		closedir(dir);
	snprintf(path, sizeof path, "%s/" GIVEN, directory);
	return dir && !has_others && !unlink(path);
}

/* Locked as long as it is open: two readers do not give out one run twice. The group of a volume
 * may write it, as another container of the pod does. */
static int open_given(const char *directory)
{
	char path[PATH_MAX];
	struct stat file;
	int fd;

	snprintf(path, sizeof path, "%s/" GIVEN, directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0660);
	if (fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) && !flock(fd, LOCK_EX)) {
		fchmod(fd, 0660); /* whatever the umask took; only its owner may */
		return fd;
	}
	say_info("cannot note what was reported in '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* One run a line. Whatever else is in the file is skipped. */
static void read_given(int fd, struct ended_run *runs, size_t count)
{
	FILE *file = fdopen(dup(fd), "r");
	char line[64];

	while (file && fgets(line, sizeof line, file)) {
		uint64_t start_ns;
		uint32_t pid;

		if (sscanf(line, "%" SCNu64 " %" SCNu32, &start_ns, &pid) != 2)
			continue;
		for (size_t i = 0; i < count; i++)
			if (runs[i].start_ns == start_ns && runs[i].pid == pid)
				runs[i].was_given = true;
	}
	if (file)
		fclose(file);
}

/* All runs that have ended and whose recordings are still there. */
static void write_given(int fd, const struct ended_run *runs, size_t count)
{
	FILE *file = fdopen(dup(fd), "w");

	if (!file || ftruncate(fd, 0) || fseek(file, 0, SEEK_SET)) {
		say_info("cannot note what was reported: %s", strerror(errno));
	} else {
		for (size_t i = 0; i < count; i++)
			if (runs[i].is_seen && !runs[i].goes_on)
				fprintf(file, "%" PRIu64 " %" PRIu32 "\n", runs[i].start_ns,
					runs[i].pid);
	}
	if (file && fclose(file))
		say_info("cannot note what was reported: %s", strerror(errno));
}

/* ---- the run ---- */

/* 0: none. */
static size_t last_ended(const struct ended_run *runs, size_t count)
{
	size_t last = 0;

	for (size_t i = 0; i < count; i++)
		if (runs[i].is_seen && !runs[i].goes_on && !runs[i].was_given &&
		    (!last || runs[i].end_ns >= runs[last - 1].end_ns))
			last = i + 1;
	return last;
}

size_t new_run(const char *directory)
{
	struct run_catalog catalog;
	struct ended_run *runs;
	size_t number = 0;
	int fd;

	run_catalog_read(&catalog, directory);
	runs = xalloc_zeroed(catalog.run_count, sizeof *runs);
	for (size_t i = 0; i < catalog.count; i++)
		look_at(&runs[catalog.run_of[i] - 1], catalog.paths[i]);
	if (last_ended(runs, catalog.run_count)) {
		fd = open_given(directory);
		if (fd >= 0)
			read_given(fd, runs, catalog.run_count);
		number = last_ended(runs, catalog.run_count);
		if (fd >= 0 && number)
			write_given(fd, runs, catalog.run_count);
		if (fd >= 0)
			close(fd);
	}
	free(runs);
	run_catalog_fini(&catalog);
	return number;
}
