/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/reading/sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"

static void add_path(struct sources *sources, const char *path)
{
	xalloc_grow(&sources->paths, sources->count, &sources->room, sizeof *sources->paths);
	sources->paths[sources->count++] = xalloc_string(path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int ends_with_cuf(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && !strcmp(name + length - 4, ".cuf");
}

static void walk(struct sources *sources, const char *directory);

static void add_source(struct sources *sources, const char *directory, const char *name)
{
	struct stat st;
	char *path;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		abort();
	if (lstat(path, &st))
		say_error("cannot read '%s': %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		walk(sources, path);
	else if (S_ISREG(st.st_mode) && ends_with_cuf(name))
		add_path(sources, path);
	free(path);
}

/* A directory that cannot be read is named, and the others count. */
static void walk(struct sources *sources, const char *directory)
{
	struct dirent **list;
	int count = scandir(directory, &list, NULL, by_name);

	if (count < 0) {
		say_error("cannot read '%s': %s", directory, strerror(errno));
		return;
	}
	for (int i = 0; i < count; i++) {
		add_source(sources, directory, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

int sources_find(struct sources *sources, char *const *operands, size_t count)
{
	struct stat st;

	for (size_t i = 0; i < count; i++) {
		size_t before = sources->count;

		if (stat(operands[i], &st)) {
			say_error("cannot open '%s': %s", operands[i], strerror(errno));
			return -1;
		}
		if (!S_ISDIR(st.st_mode)) {
			add_path(sources, operands[i]);
			continue;
		}
		walk(sources, operands[i]);
		if (sources->count == before) {
			say_error("no recordings in '%s'", operands[i]);
			return -1;
		}
	}
	return 0;
}

void sources_free(struct sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		free(sources->paths[i]);
	free(sources->paths);
}
