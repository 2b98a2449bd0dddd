/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuflight.ini: limits of a project, one a line.
 *
 *     # of every program
 *     device.leak = 0
 *     baseline = ci/memory.json        a path from this file
 *
 *     [server.py]                      only of this program or script
 *     device.peak <= +3%
 *     host.peak   <= 2GiB
 *
 * Contract: limits_file_find writes the path of the nearest file, from the working directory
 * upwards, and returns whether there is one. limits_file_read adds the limits that are for one of
 * `programs` (base names) and returns 0, or -1 with a sentence that names file and line. Texts are
 * in the arena.
 */
#ifndef ANALYSIS_GATE_LIMITS_FILE_H
#define ANALYSIS_GATE_LIMITS_FILE_H

#include "analysis/gate/limit.h"

#define LIMITS_FILE_NAME "cuflight.ini"

struct limits_file {
	const char *path;
	const char *const *programs; /* that were recorded, and their scripts */
	size_t program_count;
	struct arena *arena;
	struct gate_limits *limits;
	/* filled: */
	const char *baseline;  /* "baseline = FILE", as a path from here; NULL: none */
	const char *sections;  /* "[a], [b]": those that are for another program; "" */
	bool has_own_section;  /* one is for a program that was recorded */
};

bool limits_file_find(char *path, size_t bytes);
int limits_file_read(struct limits_file *file, char *error, size_t error_bytes);

#endif
