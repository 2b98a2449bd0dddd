/* SPDX-License-Identifier: Apache-2.0 */
/* -o and CUFLIGHT_OUTPUT to an absolute path and the directory that holds the recordings. */
#include "analysis/cmd/target/destination.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATTERN_DEPTH = 3 /* directories that a pattern may add */ };

/* The command may change its directory before a recording is created, so the path must be absolute.
 * "." and a leading "./" are removed to keep messages short. */
static int make_absolute(char *out, size_t bytes, const char *path)
{
	char here[PATH_MAX];
	int length;

	if (*path == '/') {
		length = snprintf(out, bytes, "%s", path);
	} else if (!getcwd(here, sizeof here)) {
		return -1;
	} else if (!strcmp(path, ".") || !strcmp(path, "./")) {
		length = snprintf(out, bytes, "%s", here);
	} else {
		if (!strncmp(path, "./", 2))
			path += 2;
		length = snprintf(out, bytes, "%s/%s", strcmp(here, "/") ? here : "", path);
	}
	if (length <= 0 || (size_t)length >= bytes)
		return -1;
	return 0;
}

/* A trailing slash states the intention, whether the directory exists or not. */
static bool names_directory(const char *path)
{
	struct stat st;

	return path[strlen(path) - 1] == '/' || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

/* The root keeps its slash. */
static void cut_trailing_slashes(char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		path[--length] = 0;
}

/* The part of a pattern before its first '%' names the directory to search. Returns -1 with errno,
 * which is 0 when the path is too long. */
int destination_set(struct destination *destination, const char *requested)
{
	const char *path = requested;
	char *end;

	memset(destination, 0, sizeof *destination);
	if (!path)
		path = getenv("CUFLIGHT_OUTPUT");
	if (!path || !*path)
		path = ".";
	if (make_absolute(destination->value, sizeof destination->value, path))
		return -1;
	destination->is_pattern = strchr(destination->value, '%') != NULL;
	destination->is_directory = names_directory(destination->value);
	memcpy(destination->directory, destination->value, sizeof destination->directory);
	if (destination->is_pattern) {
		destination->depth = PATTERN_DEPTH;
		*strchr(destination->directory, '%') = 0;
	} else if (destination->is_directory) {
		cut_trailing_slashes(destination->directory);
		return 0;
	}
	end = strrchr(destination->directory, '/');
	end[end == destination->directory] = 0; /* keep the slash of the root */
	return 0;
}

/* Directories that a pattern adds are created by the recorder. */
int destination_prepare(const struct destination *destination, bool group_reads)
{
	char path[PATH_MAX + 1];
	struct stat st;

	snprintf(path, sizeof path, "%s/", destination->directory);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0777) ? errno != EEXIST : group_reads && chmod(path, 0750))
			return -1;
		*slash = '/';
	}
	if (stat(destination->directory, &st))
		return -1;
	if (S_ISDIR(st.st_mode))
		return 0;
	errno = ENOTDIR;
	return -1;
}
