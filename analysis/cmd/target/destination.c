/* SPDX-License-Identifier: Apache-2.0 */
/* -o and CUFLIGHT_OUTPUT to an absolute value and the directory to look into. */
#include "analysis/cmd/target/destination.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_absolute(char *out, size_t bytes, const char *path)
{
	char here[PATH_MAX];
	int length;
	if (*path == '/')
		length = snprintf(out, bytes, "%s", path);
	else if (!getcwd(here, sizeof here))
		return -1;
	else if (!strcmp(path, ".") || !strcmp(path, "./"))
		length = snprintf(out, bytes, "%s", here);
	else
		length = snprintf(out, bytes, "%s/%s", strcmp(here, "/") ? here : "", path + (strncmp(path, "./", 2) ? 0 : 2));
	return length > 0 && (size_t)length < bytes ? 0 : -1;
}

int destination_set(struct destination *destination, const char *asked)
{
	const char *path = asked ? asked : getenv("CUFLIGHT_OUTPUT");
	struct stat st;
	size_t length;
	char *end;
	memset(destination, 0, sizeof *destination);
	if (!path || !*path)
		path = ".";
	if (make_absolute(destination->value, sizeof destination->value, path))
		return -1;
	length = strlen(destination->value);
	destination->is_pattern = strchr(destination->value, '%') != NULL;
	destination->is_directory = destination->value[length - 1] == '/' ||
		(!stat(destination->value, &st) && S_ISDIR(st.st_mode));
	memcpy(destination->directory, destination->value, length + 1);
	end = strchr(destination->directory, '%');
	if (end)
		*end = 0;
	else if (destination->is_directory) {
		while (length > 1 && destination->directory[length - 1] == '/')
			destination->directory[--length] = 0;
		return 0;
	}
	end = strrchr(destination->directory, '/');
	end[end == destination->directory] = 0; /* keep the root's slash */
	return 0;
}

int destination_prepare(const struct destination *destination)
{
	char path[PATH_MAX + 1];
	struct stat st;
	snprintf(path, sizeof path, "%s/", destination->directory);
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return -1;
		*p = '/';
	}
	if (stat(destination->directory, &st))
		return -1;
	errno = ENOTDIR;
	return S_ISDIR(st.st_mode) ? 0 : -1;
}
