/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the call sites of one run: the identity that a baseline knows, and what a person reads.
 *
 * Contract: naming_open borrows everything; naming_close frees. Results are in the arena and stay.
 */
#ifndef ANALYSIS_GATE_NAMING_H
#define ANALYSIS_GATE_NAMING_H

#include "analysis/gate/finding.h"

struct facts;
struct symbols;
struct frames;
struct places;

struct naming {
	struct arena *arena;
	struct frames *frames;
	struct places *places;
};

void naming_open(struct naming *naming, const struct facts *facts, struct symbols *symbols,
		 struct arena *arena);
void naming_close(struct naming *naming);

const char *naming_identity(struct naming *naming, const struct fact_stack *stack);
/* Fills identity, function, module, file, line and frames; the rest stays. */
void naming_fill(struct naming *naming, const struct fact_stack *stack, struct gate_site *out);
/* The same for a site that only a baseline has: from its identity. */
void naming_fill_gone(struct naming *naming, const char *identity, struct gate_site *out);

#endif
