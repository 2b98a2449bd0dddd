/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of suppress*.c share: the rules in their order, and the table of kinds.
 * Contract: as in suppress.h.
 */
#ifndef ANALYSIS_GATE_SUPPRESS_RULES_H
#define ANALYSIS_GATE_SUPPRESS_RULES_H

#include "analysis/gate/suppress.h"

/* Bit n of measures: enum gate_measure_id n. Bit n of groups: enum gate_group n. */
struct suppress_kind {
	const char *name;
	uint32_t measures, groups;
	const char *about; /* one phrase: what it suppresses */
};
extern const struct suppress_kind suppress_kinds[]; /* ends with a NULL name */

const struct suppress_kind *suppress_kind_find(const char *name); /* NULL: there is none */

struct suppressions {
	struct arena *arena;
	const char *today;
	struct suppress_rule *rules;
	size_t count, room;
	bool asked; /* for the rule of any call site */
};

#endif
