/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a result goes: stdout, or the file of -o. The file gets its name when it is complete, so
 * that nobody reads half a report, and a command that is killed leaves none. It is readable only by
 * its owner, like a recording: a report contains command lines and paths.
 *
 * Contract: output_open prints its errors and returns -1. output_close returns 0, or prints the
 * reason and returns -1; an older file is then unchanged. Devices and pipes are written directly.
 * An existing file is overwritten only with -f.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "analysis/cmd/cli/opts.h"
#include "analysis/base/terminal.h"

enum output_format { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_HTML };

struct output {
	FILE *file;
	const char *path;            /* NULL: stdout */
	char temporary[PATH_MAX];    /* "": it has no name yet, or is written directly */
	bool nameless, named, force;
	enum output_format format;
	struct style style;
};

int output_open(struct output *output, const struct opts *opts);
/* A further result, without colour; an existing file is replaced. "-" is stdout. */
int output_open_file(struct output *output, const char *path);
/* For a command with one format: path NULL or "-" is stdout. The style is not set. */
int output_open_path(struct output *output, const char *path, bool force);
/* The same for a writer that opens `temporary` itself; it is "" for a device or a pipe. */
int output_open_named(struct output *output, const char *path, bool force);
int output_close(struct output *output);
/* Instead of output_close: nothing is left of what was written. */
void output_abandon(struct output *output);
