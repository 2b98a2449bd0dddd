/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/export/sources.h"

#include <errno.h>
#include <fts.h>
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

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int ends_with_cuf(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && !strcmp(name + length - 4, ".cuf");
}

/* A directory that cannot be read is named, and the others count. */
static int walk(struct sources *sources, char *directory)
{
	char *roots[] = { directory, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);

	if (!tree) {
		say_error("cannot read '%s': %s", directory, strerror(errno));
		return -1;
	}
	for (FTSENT *entry; (entry = fts_read(tree));) {
		if (entry->fts_info == FTS_F && ends_with_cuf(entry->fts_name))
			add_path(sources, entry->fts_path);
		else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			say_error("cannot read '%s': %s", entry->fts_path,
				  strerror(entry->fts_errno));
	}
	fts_close(tree);
	return 0;
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
		if (walk(sources, operands[i]))
			return -1;
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
