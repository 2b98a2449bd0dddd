/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libcuflight.so is: as requested, in the directory of this executable, in its ../lib, or
 * where it was installed. Contract: 0 and an absolute path without blanks and colons, because
 * LD_PRELOAD has no way to quote them; else -1 and a sentence in why with a hint.
 */
#ifndef CMD_LIBRARY_H
#define CMD_LIBRARY_H

#include <limits.h>
#include <stddef.h>

struct library {
	char path[PATH_MAX];
	char why[PATH_MAX + 256];
};

/* requested: the value of --library; NULL: search. */
int library_find(struct library *library, const char *requested);

/*
 * The value of LD_PRELOAD: this library, then what is inherited, without other copies of it.
 * 0, or -1: it does not fit.
 */
int library_compose_preload(const char *path, const char *inherited, char *out, size_t bytes);

#endif
