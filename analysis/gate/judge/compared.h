/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sites of a run joined with those of a baseline: what each held then and now, at the
 * peak of its group and at the end.
 *
 * Contract: the arrays are in the arena of the run, which is borrowed like the baseline. Rows of
 * the run come first, in its order; then those that only the baseline has.
 */
#ifndef ANALYSIS_GATE_COMPARED_H
#define ANALYSIS_GATE_COMPARED_H

#include "analysis/gate/judge/baseline.h"

struct compared_site {
	const struct measured_site *now;     /* NULL: gone */
	const struct baseline_site *before;  /* NULL: new, or there is no baseline */
	enum gate_group group;
};

struct compared {
	struct measured *run;
	const struct gate_baseline *baseline; /* NULL: none */
	struct compared_site *sites;
	size_t count;
};

void compare_sites(struct compared *out, struct measured *run,
		   const struct gate_baseline *baseline);

/* At the peak or at the end; CUF_UNKNOWN: there is no baseline. */
uint64_t compared_now(const struct compared_site *site, bool at_end);
uint64_t compared_before(const struct compared *compared, const struct compared_site *site,
			 bool at_end);
/* Names and figures of a row. */
void compared_fill(const struct compared *compared, const struct compared_site *site, bool at_end,
		   struct gate_site *out);

#endif
