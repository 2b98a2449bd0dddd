/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit as people type it, on the command line or in cuflight.ini.
 *
 *     device.peak <= 2GiB           absolute
 *     device.leak = 0
 *     device.peak <= +3%            relative to the median of a baseline
 *     device.peak <= +3% +16MiB     both excesses must hold; without the second it is
 *                                   GATE_FLOOR_BYTES for bytes, 0 for counts
 *     device.peak@decode <= 2GiB    what a phase or marked request "decode" needs, above what
 *                                   was live at its begin; .end: what stays
 *
 * Operators are <=, <, = and >= (`device.hole >= 1GiB`); relative limits have <= or < and no
 * phase, and a phase goes with .peak and .end. Sizes have the units of units.h; blanks are free.
 *
 * Contract: gate_limit_parse returns 0, or -1 with a sentence in error. Texts of a limit are owned
 * by the arena.
 */
#pragma once

#include "analysis/gate/measures.h"

struct arena;

#define GATE_FLOOR_BYTES (1ull << 20)

enum gate_operator { GATE_AT_MOST, GATE_BELOW, GATE_EQUAL, GATE_AT_LEAST };
extern const char *const gate_operator_names[]; /* <= < = >= */

struct gate_limit {
	const struct gate_measure *measure;
	enum gate_operator operator;
	bool relative;
	bool proofs_only;    /* only what is proven trips it, and what is unknown does not: the
			      * limits that hold when none was given */
	double percent;      /* relative: the allowed excess; both must be exceeded */
	uint64_t value;      /* absolute: the limit; relative: the allowed excess in the unit */
	const char *phase;   /* NULL: the whole run */
	const char *text;    /* as typed, blanks normalised */
	const char *origin;  /* "" the command line; else "cuflight.ini:3" */
};

int gate_limit_parse(const char *text, struct arena *arena, struct gate_limit *out, char *error,
		     size_t error_bytes);

struct gate_limits { struct gate_limit *items; size_t count, room; };

/* The array grows on the heap; free(limits->items). */
void gate_limits_add(struct gate_limits *limits, const struct gate_limit *limit);

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
