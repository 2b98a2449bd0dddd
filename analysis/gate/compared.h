/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call site of one side is which call site of the other. First those of the same identity;
 * then, of the rest of a group, those that are alike (site_name.h), largest first: an optimizer
 * may have removed a frame from one of them.
 *
 * Contract: pure; indices into the arrays of the arguments. The caller frees the result.
 */
#pragma once

#include <stddef.h>
#include "analysis/gate/baseline.h"
#include "analysis/gate/measures.h"

#define MATCH_NONE ((size_t)-1)

struct match_side {
	const char *identity;
	enum gate_group group;
	uint64_t bytes; /* decides the order among those that are alike */
};

/* For each site of `now` the index in `before`, or MATCH_NONE. */
size_t *match_sites(const struct match_side *now, size_t now_count,
		    const struct match_side *before, size_t before_count);

/*
 * The call sites of a run joined with those of a baseline: what each held then and now, at the
 * peak of its group and at the end.
 *
 * Contract: the arrays are in the arena of the run, which is borrowed like the baseline. Rows of
 * the run come first, in its order; then those that only the baseline has.
 */
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

/*
 * The call sites that a measure is about, worst first: those that hold more than in the baseline,
 * that leak, that keep memory from being used, or that failed.
 *
 * Contract: the result is in the arena of the run, with names and figures filled and `rule` set by
 * suppress, which may be NULL. At most GUILTY_MAX.
 */
enum { GUILTY_MAX = 256 };

struct gate_question;
struct gate_site *guilty_sites(const struct compared *compared,
			       const struct gate_question *question,
			       const struct gate_measure *measure, size_t *count);
/* What a site adds to its measure: what it holds more than before. */
uint64_t guilty_weight(const struct gate_site *site);
