/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes as prose, for `cuflight help CAUSE` and the manual: how a person recognises a cause,
 * and an example. What it is and what to do are in the tables that judge (causes.h). Nothing here
 * takes part in a verdict. Contract: constant texts; one row for each name_id of cause_rules, which
 * tests/unit/analysis/cmd/help_causes.c checks.
 */
#pragma once

struct cause_guide {
	const char *name_id;
	const char *recognise; /* signs outside cuflight: logs, tools, when it happens */
	const char *example;
};

extern const struct cause_guide cause_guides[]; /* ends with a row without a name_id */

/* NULL: no such row. */
const struct cause_guide *cause_guide_find(const char *name_id);
