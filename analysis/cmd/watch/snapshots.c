/* SPDX-License-Identifier: Apache-2.0 */
/* Names that sort by time, and what is dropped. */
#include "analysis/cmd/watch/snapshots.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "snapshot."
#define ENDING ".cufpack"

bool snapshots_name(const struct snapshots *snapshots, const char *recording, char *out,
		    size_t bytes)
{
	const char *slash = strrchr(recording, '/'), *name = slash ? slash + 1 : recording;
	size_t length = strlen(name);
	struct timespec now;
	char moment[32];
	struct tm utc;

	if (length > 4 && !strcmp(name + length - 4, ".cuf"))
		length -= 4;
	if (length > 120)
		length = 120;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(moment, sizeof moment, "%Y%m%dT%H%M%S", &utc);
	return snprintf(out, bytes, "%s/" PREFIX "%s.%03ldZ.%.*s" ENDING, snapshots->directory,
			moment, now.tv_nsec / 1000000, (int)length, name) < (int)bytes;
}

/* A pack is first a copy of what the recording has, and then, compressed, at most as long. */
bool snapshots_fit(const struct snapshots *snapshots, const char *recording, uint64_t *free_bytes,
		   uint64_t *needed_bytes)
{
	struct statvfs disk;
	struct stat file;

	*free_bytes = *needed_bytes = 0;
	if (stat(recording, &file) || statvfs(snapshots->directory, &disk))
		return false;
	*needed_bytes = (uint64_t)file.st_blocks * 512;
	*free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	return *free_bytes >= *needed_bytes;
}

/* ---- what is kept ---- */

static int is_snapshot(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name);

	return !strncmp(entry->d_name, PREFIX, strlen(PREFIX)) && bytes > strlen(ENDING) &&
	       !strcmp(entry->d_name + bytes - strlen(ENDING), ENDING);
}

static uint64_t bytes_of(const char *directory, const char *name)
{
	char path[PATH_MAX];
	struct stat file;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return lstat(path, &file) ? 0 : (uint64_t)file.st_size;
}

static void drop(const char *directory, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	unlink(path);
}

/* The second one and those after it, then the first, and last the newest. */
static int nth_to_drop(int i, int count)
{
	if (i < count - 2)
		return i + 1;
	return i == count - 2 ? 0 : count - 1;
}

size_t snapshots_trim(const struct snapshots *snapshots)
{
	struct dirent **entries;
	int count = scandir(snapshots->directory, &entries, is_snapshot, alphasort);
	uint64_t bytes = 0, left = count > 0 ? (uint64_t)count : 0;

	for (int i = 0; i < count; i++)
		bytes += bytes_of(snapshots->directory, entries[i]->d_name);
	for (int i = 0; i < count && (left > snapshots->most || bytes > snapshots->most_bytes);
	     i++) {
		const char *name = entries[nth_to_drop(i, count)]->d_name;

		bytes -= bytes_of(snapshots->directory, name);
		drop(snapshots->directory, name);
		left--;
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	return left;
}
