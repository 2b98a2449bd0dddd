/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resident size of this process, read without allocating. Contract: bytes; 0 where /proc does
 * not have it.
 */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* row: "\nRss:", "\nAnonymous:" */
static inline size_t resident_row(const char *row)
{
	char text[4096], *line;
	int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	line = strstr(text, row);
	return line ? strtoul(line + strlen(row), NULL, 10) << 10 : 0;
}

static inline size_t resident_bytes(void) { return resident_row("\nRss:"); }
static inline size_t resident_anonymous_bytes(void)
{
	return resident_row("\nAnonymous:");
} /* no files, and so no recording */
