/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why memory ran out. One table of rules (causes_table.c), each scored on the same evidence vector; one table of what to do
 * about it (causes_fix.c). The rule for confidence, in full:
 *
 *   A rule has needs and terms, each a comparison of one term of the vector with a threshold. A need that is known and does
 *   not hold rules the cause out, and so does the first one when it could not be seen; another one unseen takes 0.7 of the score. The score is the rule's base plus the
 *   weights of the terms that hold (a negative weight speaks against); it is multiplied by what the recording is worth
 *   (evidence.c: lost, cut or overwritten events, unknown free memory) and never more than 0.97. Where another cause comes
 *   within 0.15, the lead that is missing to it is taken off once more, halved. Below 0.3 there is no verdict but
 *   "inconclusive". Shown as high from 0.8, medium from 0.5, else low.
 *
 * Contract: cause_rules is constant and ends with a rule without an id; several rules may share an id (different signs of
 * one cause). Weights and thresholds were set by reasoning and by the generated victims (tests/e2e/README.md), not
 * by a corpus of real failures; each rule's source says where its signs come from.
 */
#ifndef ANALYSIS_EXPLAIN_CAUSES_H
#define ANALYSIS_EXPLAIN_CAUSES_H

#include "analysis/explain/cause.h"
#include "analysis/explain/evidence.h"

#define CAUSE_HIGH 0.8
#define CAUSE_MEDIUM 0.5
#define CAUSE_LEAST 0.3
#define CAUSE_MOST 0.97
#define CAUSE_UNSEEN 0.7
#define CAUSE_LEAD 0.15

enum { CAUSE_NEEDS = 5, CAUSE_TERMS = 16 };
enum cause_scope { AT_FAILURE = 1 /* of the device's memory */, AT_END = 2, AT_REFUSAL = 4 /* of malloc */ };

struct cause_term { enum term term; bool below; double threshold; double weight; /* of needs: 0 */ };

struct cause_rule {
	const char *id;                 /* "S6.F1": stable, for programs */
	const char *name_id;            /* "fragmentation-pinned": the name that people type; one for each id */
	const char *name;               /* a few words */
	const char *summaries[3];       /* sentences; the first whose figures are all known is taken */
	const char *about, *source;     /* for help: what it is and how it shows; where signs and thresholds come from */
	const char *settle;             /* what would make it certain */
	unsigned scope;                 /* enum cause_scope */
	double base;
	struct cause_term needs[CAUSE_NEEDS], terms[CAUSE_TERMS]; /* up to the first without a threshold */
};
extern const struct cause_rule cause_rules[];

/* The first row whose id or name_id is this name, else the first one that begins with it ("S6" finds "S6.F1",
 * "fragmentation" finds "fragmentation-pinned"); NULL: none. Case is ignored. */
const struct cause_rule *cause_named(const char *name);

/* One rule on one vector; 0: ruled out. */
double cause_score(const struct cause_rule *rule, const struct evidence *evidence);
/* The verdict; NULL: no rule has anything to say (nothing is wrong). In the arena of the run. */
const struct fact_cause *cause_judge(struct build *build, const struct evidence *evidence);

/* incident.cause and facts.cause: the last pass, it reads all the others filled. */
void build_causes(struct build *build);

/* What to do, best first; in the arena. */
const struct fact_fix *cause_fixes(struct build *build, const struct evidence *evidence, const char *id, size_t *count);
/* The rows of the advice for help: a row of every framework. False at the end. */
struct cause_advice { const char *cause, *framework, *knob, *words; };
bool cause_advice_row(size_t index, struct cause_advice *out);

#endif
