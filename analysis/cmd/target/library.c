/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the recorder, and putting it in front of other preloaded libraries. */
#include "analysis/cmd/target/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY_NAME "libcuflight.so"

/* Relative to the directory of this executable, but for the last: build tree, installed, installed elsewhere. */
static const char *const places[] = { "", "../lib/", "../lib64/", CUFLIGHT_PREFIX "/lib/" };

static int accept_path(struct library *library, const char *path)
{
	char *absolute = realpath(path, NULL);
	int error = errno;
	if (!absolute || access(absolute, R_OK)) {
		snprintf(library->why, sizeof library->why, "cannot use %s: %s", path, strerror(absolute ? errno : error));
		free(absolute);
		return -1;
	}
	if (strpbrk(absolute, " :\t\n")) {
		snprintf(library->why, sizeof library->why, "LD_PRELOAD cannot name '%s': it has a blank or a colon; copy the library "
			 "elsewhere and give --library=PATH", absolute);
		free(absolute);
		return -1;
	}
	snprintf(library->path, sizeof library->path, "%s", absolute);
	free(absolute);
	return 0;
}

int library_find(struct library *library, const char *asked)
{
	char here[PATH_MAX], path[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
	char *slash;
	memset(library, 0, sizeof *library);
	if (asked)
		return accept_path(library, asked);
	here[length > 0 ? length : 0] = 0;
	slash = strrchr(here, '/');
	if (slash)
		slash[1] = 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (*places[i] != '/' && !slash)
			continue;
		snprintf(path, sizeof path, "%s%s%s", *places[i] == '/' ? "" : here, places[i], LIBRARY_NAME);
		if (access(path, F_OK) == 0)
			return accept_path(library, path);
	}
	snprintf(library->why, sizeof library->why, "no %s beside %s, in ../lib, nor in %s/lib; give --library=PATH", LIBRARY_NAME,
		 slash ? here : "this executable", CUFLIGHT_PREFIX);
	return -1;
}

static int is_ours(const char *entry, size_t bytes)
{
	size_t own = strlen(LIBRARY_NAME);
	return bytes >= own && !memcmp(entry + bytes - own, LIBRARY_NAME, own) && (bytes == own || entry[bytes - own - 1] == '/');
}

int library_compose_preload(const char *path, const char *inherited, char *out, size_t bytes)
{
	int used = snprintf(out, bytes, "%s", path);
	while (inherited && *inherited && used >= 0 && (size_t)used < bytes) {
		size_t length = strcspn(inherited, " :");
		if (length && !is_ours(inherited, length))
			used += snprintf(out + used, bytes - (size_t)used, ":%.*s", (int)length, inherited);
		inherited += length + (inherited[length] != 0);
	}
	return used >= 0 && (size_t)used < bytes ? 0 : -1;
}
