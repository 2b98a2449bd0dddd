/* SPDX-License-Identifier: Apache-2.0 */
/* A header and a fixed number of slots; the oldest slot is taken again. */
#include "analysis/cmd/live/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 1024 };

struct slot { uint64_t key, fired_s; }; /* key 0: free */

struct keep_file {
	char magic[8];
	uint64_t pid;
	struct slot slots[SLOTS];
};

static const char magic[] = "cufwatch";

static int make_file(int fd, struct keep_file *file)
{
	int error;

	if (pread(fd, file, sizeof *file, 0) == (ssize_t)sizeof *file &&
	    !memcmp(file->magic, magic, sizeof file->magic))
		return 0;
	memset(file, 0, sizeof *file);
	memcpy(file->magic, magic, sizeof file->magic);
	error = posix_fallocate(fd, 0, sizeof *file);
	if (error) {
		errno = error;
		return -1;
	}
	return pwrite(fd, file, sizeof *file, 0) == (ssize_t)sizeof *file ? 0 : -1;
}

int keep_open(struct keep *keep, const char *directory, uint64_t interval_s, pid_t *other)
{
	struct keep_file file = { .pid = 0 };
	char path[PATH_MAX];
	int error;

	*other = 0;
	keep->interval_s = interval_s;
	if (snprintf(path, sizeof path, "%s/state", directory) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (mkdir(directory, 0700) && errno != EEXIST)
		return -1;
	keep->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (keep->fd < 0)
		return -1;
	if (flock(keep->fd, LOCK_EX | LOCK_NB)) {
		error = errno;
		if (pread(keep->fd, &file, sizeof file, 0) == (ssize_t)sizeof file)
			*other = (pid_t)file.pid;
	} else if (make_file(keep->fd, &file)) {
		error = errno ? errno : EIO;
	} else {
		file.pid = (uint64_t)getpid();
		if (pwrite(keep->fd, &file.pid, sizeof file.pid,
			   offsetof(struct keep_file, pid)) == sizeof file.pid)
			return 0;
		error = errno;
	}
	close(keep->fd);
	errno = error;
	return -1;
}

void keep_close(struct keep *keep) { close(keep->fd); }

/* FNV-1a of both with their ends: the same in every version. */
static uint64_t keep_key_of(const char *rule, const char *process)
{
	const char *texts[] = { rule, process };
	uint64_t key = 0xcbf29ce484222325;

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0, end = strlen(texts[t]) + 1; i < end; i++)
			key = (key ^ (uint8_t)texts[t][i]) * 0x100000001b3;
	return key | 1;
}

/* The slot of the key, else the oldest. False: the file cannot be read. */
static bool find_slot(const struct keep *keep, uint64_t key, struct slot *slot, size_t *index)
{
	struct slot slots[SLOTS];
	size_t best = 0;

	if (pread(keep->fd, slots, sizeof slots, offsetof(struct keep_file, slots)) !=
	    (ssize_t)sizeof slots)
		return false;
	for (size_t i = 0; i < SLOTS && slots[best].key != key; i++)
		if (slots[i].key == key || slots[i].fired_s < slots[best].fired_s)
			best = i;
	*slot = slots[best];
	*index = best;
	return true;
}

bool keep_may(const struct keep *keep, const char *rule, const char *process, uint64_t now_s)
{
	uint64_t key = keep_key_of(rule, process);
	struct slot slot;
	size_t index;

	return find_slot(keep, key, &slot, &index) &&
	       (slot.key != key || now_s < slot.fired_s ||
		now_s - slot.fired_s >= keep->interval_s);
}

int keep_note(const struct keep *keep, const char *rule, const char *process, uint64_t now_s)
{
	struct slot slot, now = { keep_key_of(rule, process), now_s };
	size_t index;

	errno = EIO;
	if (!find_slot(keep, now.key, &slot, &index) ||
	    pwrite(keep->fd, &now, sizeof now, (off_t)(offsetof(struct keep_file, slots) +
						       index * sizeof now)) != sizeof now)
		return -1;
	return fdatasync(keep->fd);
}
