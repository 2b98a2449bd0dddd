/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed between two sides: runs, baselines, or two moments of one run. Every side is a
 * baseline here; one made from a run also has names for its call sites.
 *
 * Contract: diff_take fills *out in the arena; sides are borrowed. Rows are sorted by the size of
 * the change, biggest first. Changes of less than least_bytes are left out and counted.
 */
#pragma once

#include "analysis/gate/baseline.h"

enum diff_change { DIFF_NEW, DIFF_GROWN, DIFF_SHRUNK, DIFF_GONE, DIFF_MAX };
extern const char *const diff_names[DIFF_MAX]; /* new grown shrunk gone */

struct diff_side {
	const char *name;                /* as typed */
	const struct gate_baseline *figures;
	struct measured *run;            /* NULL: read from a file */
};

struct diff_row {
	enum diff_change change;
	struct gate_site site;
};

struct diff_measure {
	const struct gate_measure *measure;
	uint64_t before, now;            /* medians; CUF_UNKNOWN: this side does not have it */
};

struct gate_diff {
	const char *before, *now;        /* names of the sides */
	bool at_end;                     /* call sites at the end, else at the peak */
	struct diff_measure measures[MEASURE_MAX]; /* those that differ, and all peaks and ends
						    * that are not 0 on both sides */
	size_t measure_count;
	struct diff_row *rows;
	size_t row_count;
	uint64_t left_out;               /* smaller changes of call sites */
	const char *difference;          /* of the environments: a sentence; NULL: none */
};

void diff_take(struct gate_diff *out, const struct diff_side *before, const struct diff_side *now,
	       bool at_end, uint64_t least_bytes, struct arena *arena);
/* Whether a call site changed by as much as least_bytes. */
bool diff_has_change(const struct gate_diff *diff);
