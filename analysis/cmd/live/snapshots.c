/* SPDX-License-Identifier: Apache-2.0 */
/* Names that sort by time, and what is dropped. */
#include "analysis/cmd/live/snapshots.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/cmd/cli/say.h"

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

static uint64_t snapshot_bytes(const char *directory, const char *name)
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
		bytes += snapshot_bytes(snapshots->directory, entries[i]->d_name);
	for (int i = 0; i < count && (left > snapshots->most || bytes > snapshots->most_bytes);
	     i++) {
		const char *name = entries[nth_to_drop(i, count)]->d_name;

		bytes -= snapshot_bytes(snapshots->directory, name);
		drop(snapshots->directory, name);
		left--;
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	return left;
}

extern char **environ;

void snapshot_init(struct snapshot *snapshot) { *snapshot = (struct snapshot){ 0, -1, -1 }; }

/* In a group of its own: the terminal's keys are not for it. */
static int spawn(pid_t *pid, char *const *argv, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, 1);
	posix_spawn_file_actions_adddup2(&actions, output, 2);
	error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return error;
}

bool snapshot_start(struct snapshot *snapshot, const char *recording, unsigned pid)
{
	char stamp[32], option[96];
	const char *const argv[] = { "cuflight", "pack", option, "--", recording, NULL };
	time_t now = time(NULL);
	struct tm local;

	if (snapshot->pid > 0)
		return false;
	strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
	snprintf(option, sizeof option, "--output=cuflight-%u-%s.cufpack", pid, stamp);
	snapshot->output = memfd_create("cuflight-snapshot", MFD_CLOEXEC);
	if (snapshot->output < 0)
		return false;
	if (spawn(&snapshot->pid, (char *const *)argv, snapshot->output)) {
		close(snapshot->output);
		snapshot_init(snapshot);
		return false;
	}
	snapshot->fd = (int)syscall(SYS_pidfd_open, snapshot->pid, 0);
	return true;
}

bool snapshot_take(struct snapshot *snapshot, char *sentence, size_t bytes)
{
	char line[1024];

	if (snapshot->pid <= 0 || waitpid(snapshot->pid, NULL, WNOHANG) != snapshot->pid)
		return false;
	say_last_line(snapshot->output, line, sizeof line);
	clean_terminal(sentence, bytes, *line ? line : "the snapshot failed", false);
	if (snapshot->fd >= 0)
		close(snapshot->fd);
	close(snapshot->output);
	snapshot_init(snapshot);
	return true;
}
