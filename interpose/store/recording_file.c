/* SPDX-License-Identifier: Apache-2.0 */
/* From a pattern to an open file under a free name. */
#include "interpose/store/recording_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "interpose/platform/options.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

#define DEFAULT_NAME "cuflight.%e.%h.%p.cuf"
#define SUFFIX ".cuf"
enum { NAMES_MAX = 1000, SUFFIX_BYTES = sizeof SUFFIX - 1 };

/*
 * "dir" or "dir/" means a file of the default name in it; any other pattern names the file.
 * Returns 1, 0, or -errno when it cannot be known. Then no file is created, as the name could be
 * wrong.
 */
static int is_directory(const char *path)
{
	size_t length = strlen(path);
	struct stat stat;
	long result;

	if (length && path[length - 1] == '/')
		return 1;
	result = cuf_sys(SYS_newfstatat, AT_FDCWD, (long)path, (long)&stat, 0, 0, 0);
	if (result == -ENOENT || result == -ENOTDIR)
		return 0;
	return result < 0 ? (int)result : S_ISDIR(stat.st_mode);
}

/* Creates the directories of a path. A failure shows when the file is opened. */
static void make_parents(char *path)
{
	for (char *slash = path + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = 0;
		if (!cuf_sys(SYS_mkdirat, AT_FDCWD, (long)path, 0700, 0, 0, 0) && cuf_options.mode)
			cuf_sys(SYS_fchmodat, AT_FDCWD, (long)path, 0750, 0, 0, 0);
		*slash = '/';
	}
}

/* Puts ".2", ".3" ... in front of the suffix ".cuf", or at the end of a name without one. */
static int add_number(char *name, unsigned number, unsigned room)
{
	size_t used = strlen(name);
	bool has_suffix = used > SUFFIX_BYTES && !strcmp(name + used - SUFFIX_BYTES, SUFFIX);
	struct cuf_text text = { name, used, room };

	if (has_suffix)
		text.used -= SUFFIX_BYTES;
	cuf_text_add(&text, ".");
	cuf_text_number(&text, number);
	cuf_text_add(&text, has_suffix ? SUFFIX : "");
	return text.used + 1 >= room ? -ENAMETOOLONG : 0;
}

/*
 * A relative name means the directory in which the program was started. Where the program has left
 * it, the name is made absolute.
 */
static int anchor(char *path, unsigned room)
{
	char now[CUF_OPTION_PATH_BYTES];
	size_t start = strlen(cuf_options.directory), used = strlen(path);

	if (path[0] == '/' || !start)
		return 0;
	if (cuf_sys(SYS_getcwd, (long)now, sizeof now, 0, 0, 0, 0) > 0 &&
	    !strcmp(now, cuf_options.directory))
		return 0;
	if (start + 1 + used + 1 > room)
		return -ENAMETOOLONG;
	memmove(path + start + 1, path, used + 1);
	memcpy(path, cuf_options.directory, start);
	path[start] = '/';
	return 0;
}

/*
 * The n-th name of this process, counted from 0: first the pattern's, then x.2.cuf, x.3.cuf ...
 * unless the pattern has a number in it (%n).
 */
static int make_name(unsigned n, const struct cuf_name_parts *names, char *to, unsigned room)
{
	const char *pattern = *cuf_options.output ? cuf_options.output : "./";
	struct cuf_name_parts parts = *names;
	size_t used;
	int directory;

	parts.n = n;
	if (cuf_options_expand(pattern, &parts, to, room - sizeof DEFAULT_NAME) ||
	    anchor(to, room - sizeof DEFAULT_NAME))
		return -ENAMETOOLONG;
	directory = is_directory(to);
	if (directory < 0)
		return directory;
	if (directory) {
		used = strlen(to);
		if (to[used - 1] != '/')
			to[used++] = '/';
		if (cuf_options_expand(DEFAULT_NAME, &parts, to + used, (unsigned)(room - used)))
			return -ENAMETOOLONG;
	}
	if (!n || strstr(cuf_options.output, "%n"))
		return 0;
	return add_number(to, n + 1, room);
}

int cuf_recording_file_create(const struct cuf_name_parts *names, char *path, unsigned path_bytes)
{
	path[0] = 0;
	for (unsigned n = 0; n < NAMES_MAX; n++) {
		long fd = make_name(n, names, path, path_bytes);

		if (fd < 0)
			return (int)fd;
		make_parents(path);
		fd = cuf_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		/* the program's umask was applied, and who set the option knows better */
		if (fd >= 0 && cuf_options.mode)
			cuf_sys(SYS_fchmod, fd, 0640, 0, 0, 0, 0);
		if (fd != -EEXIST)
			return (int)fd;
	}
	return -EEXIST;
}

/* For file systems that cannot reserve space: a block exists once it was written. */
int cuf_recording_file_fill(int fd, size_t bytes)
{
	static const char zeros[65536];

	while (bytes) {
		size_t part = bytes < sizeof zeros ? bytes : sizeof zeros;
		long written = cuf_sys_write(fd, zeros, part);

		if (written == -EINTR)
			continue;
		if (written < 0)
			return (int)written;
		if (!written)
			return -ENOSPC;
		bytes -= (size_t)written;
	}
	return 0;
}
