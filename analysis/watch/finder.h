/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a directory, and of three levels below it (a namespace, a pod and a container), that
 * may be recordings. Contract: links are not followed, and nothing outside is opened. root may be
 * one file. The callback may not call back. FINDER_FILES files and FINDER_DIRECTORIES directories
 * at most, the first ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

enum { FINDER_FILES = 4096, FINDER_DIRECTORIES = 1024 };

struct finder_directory {
	char *path;
	dev_t device;
	ino_t inode;
	struct timespec changed;
};

struct finder {
	const char *root; /* borrowed */
	struct finder_directory *directories;
	size_t count, room, files;
};

/* Whether a file may have come or gone since finder_scan. */
bool finder_is_stale(const struct finder *finder);
/* 0, or -1 with errno: the root cannot be read. */
int finder_scan(struct finder *finder,
		void (*found)(void *state, const char *path, ino_t inode), void *state);
void finder_fini(struct finder *finder);
