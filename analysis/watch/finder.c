/* SPDX-License-Identifier: Apache-2.0 */
/* A directory is read again when its time of change is another one. */
#include "analysis/watch/finder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"

enum { LEVELS_BELOW = 3 };

static void forget_directories(struct finder *finder)
{
	for (size_t i = 0; i < finder->count; i++)
		free(finder->directories[i].path);
	finder->count = finder->files = 0;
}

void finder_fini(struct finder *finder)
{
	forget_directories(finder);
	free(finder->directories);
	*finder = (struct finder){ 0 };
}

bool finder_is_stale(const struct finder *finder)
{
	struct stat now;

	for (size_t i = 0; i < finder->count; i++) {
		const struct finder_directory *was = &finder->directories[i];

		if (lstat(was->path, &now) || now.st_dev != was->device ||
		    now.st_ino != was->inode || now.st_mtim.tv_sec != was->changed.tv_sec ||
		    now.st_mtim.tv_nsec != was->changed.tv_nsec)
			return true;
	}
	return !finder->count;
}

/* As of before it is read: what comes while it is read changes the time again. */
static bool remember(struct finder *finder, const char *path, const struct stat *seen)
{
	if (finder->count >= FINDER_DIRECTORIES)
		return false;
	xalloc_grow(&finder->directories, finder->count, &finder->room,
		    sizeof *finder->directories);
	finder->directories[finder->count++] = (struct finder_directory){
		xalloc_string(path), seen->st_dev, seen->st_ino, seen->st_mtim };
	return true;
}

struct visit {
	struct finder *finder;
	void (*found)(void *state, const char *path, ino_t inode);
	void *state;
};

static void visit_directory(const struct visit *visit, const char *path, const struct stat *seen,
			    unsigned levels)
{
	struct dirent *entry;
	char below[PATH_MAX];
	struct stat file;
	DIR *dir;

	if (!remember(visit->finder, path, seen) || !(dir = opendir(path)))
		return;
	while ((entry = readdir(dir))) {
		int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);

		if (entry->d_name[0] == '.' || length >= (int)sizeof below ||
		    fstatat(dirfd(dir), entry->d_name, &file, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(file.st_mode) && levels)
			visit_directory(visit, below, &file, levels - 1);
		else if (S_ISREG(file.st_mode) && visit->finder->files++ < FINDER_FILES)
			visit->found(visit->state, below, file.st_ino);
	}
	closedir(dir);
}

int finder_scan(struct finder *finder,
		void (*found)(void *state, const char *path, ino_t inode), void *state)
{
	struct visit visit = { finder, found, state };
	struct stat root;

	forget_directories(finder);
	if (stat(finder->root, &root))
		return -1;
	if (S_ISDIR(root.st_mode)) {
		if (faccessat(AT_FDCWD, finder->root, R_OK | X_OK, AT_EACCESS))
			return -1;
		visit_directory(&visit, finder->root, &root, LEVELS_BELOW);
		return 0;
	}
	if (!S_ISREG(root.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	remember(finder, finder->root, &root);
	found(state, finder->root, root.st_ino);
	return 0;
}
