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
#ifndef ANALYSIS_GATE_LIMIT_H
#define ANALYSIS_GATE_LIMIT_H

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

#endif
