/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call site of one side is which call site of the other. First those of the same identity;
 * then, of the rest of a group, those that are alike (site_name.h), largest first: an optimizer
 * may have removed a frame from one of them.
 *
 * Contract: pure; indices into the arrays of the arguments. The caller frees the result.
 */
#ifndef ANALYSIS_GATE_MATCH_H
#define ANALYSIS_GATE_MATCH_H

#include <stddef.h>
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

#endif
