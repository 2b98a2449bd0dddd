/* SPDX-License-Identifier: Apache-2.0 */
/* From a pattern to an open file of a name that was free. */
#include "interpose/store/recording_file.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/options.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* "dir" or "dir/" means a file of the default name in it; else the pattern names the file. 1, 0, or -errno: not to be
 * told (no descriptor is free), and then nothing is made beside what may be a directory. */
static int is_directory(const char *path)
{
	size_t length = strlen(path);
	long fd;
	if (length && path[length - 1] == '/')
		return 1;
	fd = cuf_open(path, O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd >= 0)
		cuf_sys_close((int)fd);
	return fd >= 0 ? 1 : (int)fd;
}

/* Creates the directories of a path; failures show when the file is opened. */
static void make_parents(char *path)
{
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			cuf_sys(SYS_mkdirat, AT_FDCWD, (long)path, 0700, 0, 0, 0);
			*p = '/';
		}
}

#define DEFAULT_NAME "cuflight.%e.%h.%p.cuf"
#define SUFFIX ".cuf"
enum { NAMES_MAX = 1000 };

/* The n-th name of this process: the pattern's own, then x.2.cuf, x.3.cuf ... unless the pattern counts by itself (%n). */
static int name_number(unsigned n, const struct cuf_name_parts *names, char *to, unsigned room)
{
	struct cuf_name_parts parts = *names;
	struct cuf_text text;
	size_t used, suffix = sizeof SUFFIX - 1;
	int directory;
	parts.n = n;
	if (cuf_options_expand(*cuf_options.output ? cuf_options.output : "./", &parts, to, room - sizeof DEFAULT_NAME))
		return -ENAMETOOLONG;
	directory = is_directory(to);
	if (directory < 0)
		return directory;
	used = strlen(to);
	if (directory) {
		if (to[used - 1] != '/')
			to[used++] = '/';
		if (cuf_options_expand(DEFAULT_NAME, &parts, to + used, (unsigned)(room - used)))
			return -ENAMETOOLONG;
		used = strlen(to);
	}
	if (!n || strstr(cuf_options.output, "%n"))
		return 0;
	if (used <= suffix || strcmp(to + used - suffix, SUFFIX))
		suffix = 0;
	text = (struct cuf_text){ to, used - suffix, room };
	cuf_text_add(&text, ".");
	cuf_text_number(&text, n + 1);
	cuf_text_add(&text, suffix ? SUFFIX : "");
	return text.used + 1 >= room ? -ENAMETOOLONG : 0;
}

int cuf_recording_file_create(const struct cuf_name_parts *names, char *path, unsigned path_bytes)
{
	path[0] = 0;
	for (unsigned n = 0; n < NAMES_MAX; n++) {
		long fd = name_number(n, names, path, path_bytes);
		if (fd < 0)
			return (int)fd;
		make_parents(path);
		fd = cuf_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd != -EEXIST)
			return (int)fd;
	}
	return -EEXIST;
}

/* For file systems that cannot reserve space: only a block that was written is there for sure. */
int cuf_recording_file_fill(int fd, size_t bytes)
{
	static const char zeros[65536];
	while (bytes) {
		long written = cuf_sys_write(fd, zeros, bytes < sizeof zeros ? bytes : sizeof zeros);
		if (written < 0)
			return (int)written;
		if (!written)
			return -ENOSPC;
		bytes -= (size_t)written;
	}
	return 0;
}
