/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libcuflight.so is: as asked, beside this executable, in ../lib of it, or where it was installed.
 * Contract: 0 and an absolute path without blanks and colons (LD_PRELOAD has no way to quote them); else -1 and a
 * sentence in why that says what to do.
 */
#ifndef CMD_LIBRARY_H
#define CMD_LIBRARY_H

#include <limits.h>
#include <stddef.h>

struct library { char path[PATH_MAX]; char why[PATH_MAX + 256]; };

int library_find(struct library *library, const char *asked); /* asked NULL: search */

/* LD_PRELOAD with this library in front of what is there, without other copies of it. 0, or -1: no room. */
int library_compose_preload(const char *path, const char *inherited, char *out, size_t bytes);

#endif
