/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where recordings go: -o, else CUFLIGHT_OUTPUT, else the current directory; made absolute, since the recorded program
 * may change its directory before its children start. A path that ends in '/' or is a directory takes files of the
 * default name; anything else is a file name or a pattern (%p pid, %h host, %e executable, %n, %t, %q{VAR}).
 * Contract: destination_set touches nothing; 0, or -1 when the path is too long or the current directory unknown.
 */
#ifndef CMD_DESTINATION_H
#define CMD_DESTINATION_H

#include <limits.h>
#include <stdbool.h>

struct destination {
	char value[PATH_MAX];     /* absolute, for CUFLIGHT_OUTPUT */
	char directory[PATH_MAX]; /* the part before any pattern: an existing or future directory */
	bool is_directory;
	bool is_pattern;          /* has a '%' */
};

int destination_set(struct destination *destination, const char *asked);
/* Creates the directory with its parents. 0 or -1 with errno. */
int destination_prepare(const struct destination *destination);

#endif
