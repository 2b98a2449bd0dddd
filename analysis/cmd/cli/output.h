/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a result goes: stdout, or -o FILE by way of a temporary file beside it, so that nobody ever reads half a report.
 * Contract: output_open says its own errors and returns -1; output_close returns 0, or -1 after saying why (the file then
 * is as it was). Devices and pipes are written directly. An existing file needs -f.
 */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "analysis/cmd/cli/opts.h"
#include "analysis/view/text/style.h"

enum output_format { OUTPUT_TEXT, OUTPUT_JSON };

struct output {
	FILE *file;
	const char *path;            /* NULL: stdout */
	char temporary[PATH_MAX];    /* "" when written directly */
	bool force;
	enum output_format format;
	struct style style;
};

int output_open(struct output *output, const struct opts *opts);
int output_close(struct output *output);

#endif
