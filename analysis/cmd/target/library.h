/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libcuflight.so is: as requested, in the directory of this executable, in its ../lib, or
 * where it was installed. Contract: 0 and an absolute path without blanks and colons, because
 * LD_PRELOAD has no way to quote them; else -1 and a sentence in why with a hint.
 */
#pragma once

#include <limits.h>
#include <stddef.h>

struct library {
	char path[PATH_MAX];
	char why[PATH_MAX + 256];
};

/* requested: the value of --library; NULL: search. */
int library_find(struct library *library, const char *requested);

/*
 * The path that serves each C library: where `make install` has put the library or a link into all
 * folders that loaders of glibc make of $LIB, "PREFIX/$LIB/libcuflight.so". Loaders of others find
 * no such file, which they ignore. Elsewhere the path itself.
 */
void library_path_for_any(const struct library *library, char *out, size_t bytes);

/* The folders that $LIB stands for: Red Hat's, others', Debian's. Ended by NULL. */
extern const char *const library_folders[];

/*
 * The value of LD_PRELOAD: this library, then what is inherited, without other copies of it.
 * 0, or -1: it does not fit.
 */
int library_compose_preload(const char *path, const char *inherited, char *out, size_t bytes);

/* The recorder inside a shipped command (images.c); no bytes: it is not inside. */
extern const char recorder_image[], recorder_image_end[];
