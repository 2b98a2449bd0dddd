/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary file next to it, fsync, rename. */
#include "analysis/cmd/serve/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A rename would put a file in the place of a device, or of a pipe that somebody reads. */
static bool is_other_than_a_file(const char *path)
{
	struct stat there;

	return !lstat(path, &there) && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode);
}

/* The collector reads only names that end in .prom: it never sees this one. */
static FILE *open_temporary(const char *path, char *temporary, size_t bytes)
{
	int fd;

	if (snprintf(temporary, bytes, "%s.%d", path, (int)getpid()) >= (int)bytes) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

int metrics_file_write(const char *path, const struct watch *watch,
		       const struct metrics_options *options)
{
	char temporary[PATH_MAX];
	FILE *file = NULL;
	int error = 0;

	if (is_other_than_a_file(path))
		errno = ENOTSUP;
	else
		file = open_temporary(path, temporary, sizeof temporary);
	if (!file)
		return -1;
	metrics_write(file, watch, options, false);
	if (fflush(file) || ferror(file) || fchmod(fileno(file), 0644) || fsync(fileno(file)))
		error = errno ? errno : EIO;
	if (fclose(file) && !error)
		error = errno;
	if (!error && rename(temporary, path))
		error = errno;
	if (!error)
		return 0;
	unlink(temporary);
	errno = error;
	return -1;
}

void metrics_file_remove(const char *path)
{
	if (!is_other_than_a_file(path))
		unlink(path);
}
