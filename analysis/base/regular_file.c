/* SPDX-License-Identifier: Apache-2.0 */
/* A file is looked at through a descriptor that cannot read (O_PATH), then opened through that. */
#include "analysis/base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"

/* The file behind an O_PATH descriptor, for reading. Where /proc is missing the path must do. */
static int open_for_reading(int seen, const char *path, int extra_flags)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char link[32];
	int fd;

	snprintf(link, sizeof link, "/proc/self/fd/%d", seen);
	fd = open(link, flags);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, flags | extra_flags);
	return fd;
}

int regular_file_open(const char *path, int extra_flags, const char **why)
{
	struct stat file;
	int fd = -1, error = EINVAL, seen = open(path, O_PATH | O_CLOEXEC | extra_flags);

	if (why)
		*why = "not a regular file";
	if (seen >= 0 && !fstat(seen, &file) && !S_ISREG(file.st_mode)) {
		close(seen);
		errno = EINVAL;
		return -1;
	}
	if (seen >= 0)
		fd = open_for_reading(seen, path, extra_flags);
	if (fd < 0)
		error = errno;
	if (seen >= 0)
		close(seen);
	if (fd < 0 && why)
		*why = strerror(error);
	errno = error;
	return fd;
}

char *regular_file_read(const char *path, size_t bytes_max, size_t *bytes, const char **why)
{
	enum { AT_ONCE = 1 << 16 };
	int file = regular_file_open(path, 0, why);
	size_t room = 0;
	char *text = NULL;
	ssize_t got;

	if (file < 0)
		return NULL;
	for (*bytes = 0;; *bytes += (size_t)got) {
		if (*bytes + AT_ONCE > room) {
			room = 2 * room + AT_ONCE;
			text = xalloc_resize(text, room, 1);
		}
		got = read(file, text + *bytes, AT_ONCE);
		if (got <= 0 || *bytes >= bytes_max)
			break;
	}
	*why = strerror(got < 0 ? errno : EFBIG);
	close(file);
	if (!got)
		return text;
	free(text);
	return NULL;
}

/*
 * The kernel grants a lease for reading only while there is no writer. It is released at once.
 * Who opens the file for writing in between waits for that, and the kernel signals us: by SIGIO,
 * which would end the process, unless it is asked for a signal that is ignored.
 */
enum file_writers file_writers(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG))
		return FILE_WRITERS_UNKNOWN;
	if (!fcntl(fd, F_SETLEASE, F_RDLCK)) {
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return FILE_HAS_NO_WRITER;
	}
	return errno == EAGAIN ? FILE_HAS_WRITER : FILE_WRITERS_UNKNOWN;
}

/* The kernel's struct statx, of which old libraries know nothing: only the field that is read. */
struct birth {
	uint32_t mask, before[19];
	int64_t seconds;
	uint32_t nanoseconds, after[41];
};
_Static_assert(sizeof(struct birth) == 256, "what the kernel writes");
enum { HAS_BIRTH = 0x800 };

uint64_t file_birth_ns(int fd)
{
	struct birth birth = { 0 };

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, HAS_BIRTH, &birth) ||
	    !(birth.mask & HAS_BIRTH) || birth.seconds < 0)
		return 0;
	return (uint64_t)birth.seconds * 1000000000 + birth.nanoseconds;
}
