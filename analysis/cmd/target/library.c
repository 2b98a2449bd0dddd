/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the recorder, and puts it in front of other preloaded libraries. */
#include "analysis/cmd/target/library.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/target/embedded.h"

#define LIBRARY_NAME "libcuflight.so"

#if defined __aarch64__
#define MULTIARCH "lib/aarch64-linux-gnu"
#else
#define MULTIARCH "lib/x86_64-linux-gnu"
#endif
const char *const library_folders[] = { "lib64", "lib", MULTIARCH, NULL };

/* Patterns, relative to the directory of this executable, except the last one: a build tree, an
 * installation, Debian's package, a wheel in an environment and one of pip's --target. */
static const char *const places[] = {
	"", "../lib/", "../lib64/", "../" MULTIARCH "/", "../lib/python3*/site-packages/cuflight/",
	"../lib/python3*/dist-packages/cuflight/", "../cuflight/", CUFLIGHT_PREFIX "/lib/",
};

/* The loader splits LD_PRELOAD at blanks and colons and has no way to quote them. */
static int accept_path(struct library *library, const char *path)
{
	char *absolute = realpath(path, NULL);
	int status = -1;

	if (!absolute || access(absolute, R_OK)) {
		snprintf(library->why, sizeof library->why, "cannot use %s: %s", path,
			 strerror(errno));
	} else if (strpbrk(absolute, " :\t\n")) {
		snprintf(library->why, sizeof library->why,
			 "cannot preload '%s': its path has a blank or a colon; "
			 "copy the library elsewhere and use --library=PATH", absolute);
	} else {
		snprintf(library->path, sizeof library->path, "%s", absolute);
		status = 0;
	}
	free(absolute);
	return status;
}

/* The directory of this executable, with its slash; "" when /proc is not mounted. */
static void find_own_directory(char *out, size_t bytes)
{
	ssize_t length = readlink("/proc/self/exe", out, bytes - 1);
	char *slash;

	if (length < 0)
		length = 0;
	out[length] = 0;
	slash = strrchr(out, '/');
	if (slash)
		slash[1] = 0;
}

static bool first_match(char *path, size_t bytes)
{
	glob_t found;
	bool any;

	if (!access(path, F_OK))
		return true;
	any = strchr(path, '*') && !glob(path, 0, NULL, &found);
	if (any) {
		snprintf(path, bytes, "%s", found.gl_pathv[0]);
		globfree(&found);
	}
	return any;
}

int library_find(struct library *library, const char *requested)
{
	char here[PATH_MAX], path[PATH_MAX + 64];

	memset(library, 0, sizeof *library);
	if (requested)
		return accept_path(library, requested);
	find_own_directory(here, sizeof here);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		bool absolute = *places[i] == '/';
		if (!absolute && !*here)
			continue;
		snprintf(path, sizeof path, "%s%s%s", absolute ? "" : here, places[i],
			 LIBRARY_NAME);
		if (first_match(path, sizeof path))
			return accept_path(library, path);
	}
	snprintf(library->why, sizeof library->why,
		 "cannot find %s in %s, its ../lib, or %s/lib; use --library=PATH%s", LIBRARY_NAME,
		 *here ? here : "the directory of this executable", CUFLIGHT_PREFIX,
		 embedded_is_empty(recorder_image, recorder_image_end) ? "" :
		 ", or 'cuflight install DIRECTORY' once: this command has it inside");
	return -1;
}

void library_path_for_any(const struct library *library, char *out, size_t bytes)
{
	static const char place[] = "/lib/" LIBRARY_NAME;
	size_t length = strlen(library->path), prefix = length - strlen(place);
	char path[PATH_MAX + 64];
	bool is_everywhere = length > strlen(place) && !strcmp(library->path + prefix, place) &&
			     !strchr(library->path, '$');

	for (size_t i = 0; library_folders[i] && is_everywhere; i++) {
		snprintf(path, sizeof path, "%.*s/%s/%s", (int)prefix, library->path,
			 library_folders[i], LIBRARY_NAME);
		is_everywhere = access(path, R_OK) == 0;
	}
	if (is_everywhere)
		snprintf(out, bytes, "%.*s/$LIB/%s", (int)prefix, library->path, LIBRARY_NAME);
	else
		snprintf(out, bytes, "%s", library->path);
}

/* Compares the file name, because an inherited entry may be another copy of the recorder. Two
 * recorders in one process would record everything twice. */
static bool is_our_library(const char *entry, size_t bytes)
{
	size_t name_bytes = strlen(LIBRARY_NAME);
	const char *name = entry + bytes - name_bytes;

	if (bytes < name_bytes || memcmp(name, LIBRARY_NAME, name_bytes) != 0)
		return false;
	return bytes == name_bytes || name[-1] == '/';
}

/* The recorder comes first: its hooks then see calls before other preloaded libraries. */
int library_compose_preload(const char *path, const char *inherited, char *out, size_t bytes)
{
	int used = snprintf(out, bytes, "%s", path);

	while (inherited && *inherited && used >= 0 && (size_t)used < bytes) {
		size_t length = strcspn(inherited, " :");
		if (length && !is_our_library(inherited, length))
			used += snprintf(out + used, bytes - (size_t)used, ":%.*s", (int)length,
					 inherited);
		inherited += length + (inherited[length] != 0);
	}
	if (used < 0 || (size_t)used >= bytes)
		return -1;
	return 0;
}
