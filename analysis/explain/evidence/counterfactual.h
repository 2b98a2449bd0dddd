/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills evidence.removals from the metrics and the demand, and corrects what they contradict: gaps
 * that would have been used up at once are no fragmentation. Contract: after evidence_adjust.
 */
#ifndef ANALYSIS_EXPLAIN_EVIDENCE_COUNTERFACTUAL_H
#define ANALYSIS_EXPLAIN_EVIDENCE_COUNTERFACTUAL_H

#include "analysis/explain/evidence/evidence.h"

void evidence_counterfactual(const struct build *build, struct evidence *evidence);

/* "the leak"; for sentences that begin with "without". */
extern const char *const removal_words[REMOVAL_MAX];

/*
 * How much of what would have helped this removal buys, 0 .. 1, to weigh a cause by. 1: no limit in
 * sight, or unknown. What grows without end makes every other removal a delay. Loading ends by
 * itself, so that a removal as large as half of what was loaded may have been enough.
 */
double removal_weight(const struct evidence *evidence, enum removed what);

#endif
