/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where recordings go: -o, else CUFLIGHT_OUTPUT, else the current directory. The path is made
 * absolute, because the recorded program may change its directory before it starts children.
 * A path that ends in '/' or is a directory receives files with the default name. Everything else
 * is a file name, or a pattern (%p pid, %h host, %e executable, %n, %t, %q{VAR}).
 *
 * Contract: destination_set creates nothing. It returns 0, or -1 when the path is too long or the
 * current directory is unknown.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct destination {
	char value[PATH_MAX];     /* absolute, for CUFLIGHT_OUTPUT */
	char directory[PATH_MAX]; /* the part before any pattern; it may not exist yet */
	bool is_directory;
	bool is_pattern;          /* contains '%' */
	unsigned depth;           /* levels below directory that may contain recordings */
};

/* requested: the value of -o, or NULL. */
int destination_set(struct destination *destination, const char *requested);

/* Creates the directory and its parents, by the umask; group_reads: for this group, too. 0, or -1
 * with errno. */
int destination_prepare(const struct destination *destination, bool group_reads);
