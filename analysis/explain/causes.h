/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why memory ran out: one table of rules (causes_table.c), and one table of what to do about it
 * (causes_fix.c).
 *
 * Of a failed request for device memory a budget decides, and a rule only names: budget.h.
 * Of everything else the rules are scored on the same evidence. A rule has needs and tests. Each
 * compares one signal with a threshold.
 * - A need that is known and does not hold rules the cause out. The first need must also be known.
 *   If any other need is unknown, the score is multiplied by 0.7.
 * - The score is the rule's base plus the weights of the tests that hold. A negative weight is
 *   evidence against the cause. An unknown test adds nothing.
 * - The score is multiplied by the quality of the recording (evidence_gather.c), and limited to
 *   0.97.
 * - If the runner-up is within 0.15 of the best cause, subtract half of (0.15 - lead).
 * - If the best score is below 0.3, the verdict is "inconclusive".
 * The screen shows "high" from 0.8, "medium" from 0.5, else "low".
 *
 * Contract: cause_rules is constant and ends with a rule without an id. Several rules may share an
 * id; they are different signs of one cause. Weights and thresholds were set by reasoning and with
 * generated victims (tests/e2e/README.md), not with a corpus of real failures.
 */
#pragma once

#include "analysis/facts/cause.h"
#include "analysis/explain/evidence/evidence.h"
#include "analysis/explain/evidence/thresholds.h"

#define CAUSE_SHOWN 1 /* the weight of what shows a cause and does not decide it */

enum { CAUSE_NEEDS = 7, CAUSE_TESTS = 16 };

/* Which question a rule answers; bits. */
enum cause_scope {
	AT_FAILURE = 1, /* a request for device memory failed */
	AT_END = 2, /* how a process ended, or what grows */
	AT_REFUSAL = 4 /* malloc failed */
};

/* One comparison. It holds when the signal is known and at least (below: less than) threshold. */
struct cause_test {
	enum signal signal;
	bool below;
	double threshold;
	double weight; /* of needs: 0 */
};

struct cause_rule {
	const char *id; /* "S6.F1": stable, for programs */
	const char *name_id; /* "fragmentation-pinned": what people type; one for each id */
	const char *name; /* a few words */
	const char *summaries[3]; /* the first one whose metrics are all known is used */
	const char *about; /* for help: what it is and how it shows; "" in later rows */
	const char *source; /* for help: where signs and thresholds come from */
	const char *would_confirm; /* data that would make it certain; "" */
	/* in the first row of an id; see struct fact_cause */
	unsigned blames;
	enum fact_marks marks;
	bool is_page_lock;
	enum removed removes; /* of device memory: what would have to go */
	/* a name that states what it is, so that it need not be inferred; SIGNAL_survived: none */
	enum signal named_by;
	unsigned scope; /* enum cause_scope */
	double base;
	struct cause_test needs[CAUSE_NEEDS]; /* up to the first without a threshold */
	struct cause_test tests[CAUSE_TESTS];
};
extern const struct cause_rule cause_rules[];

/* The first row whose id or name_id is this name, else the first one that begins with it ("S6"
 * finds "S6.F1", "fragmentation" finds "fragmentation-pinned"); NULL: none. Case is ignored. */
const struct cause_rule *cause_named(const char *name);

/* Does the comparison hold? An unknown signal makes it false either way. */
bool cause_holds(const struct cause_test *test, const struct evidence *evidence);
/* Behind the last need, and behind the last test. */
const struct cause_test *cause_needs_end(const struct cause_rule *rule);
const struct cause_test *cause_tests_end(const struct cause_rule *rule);
/* At which kind of moment a rule may apply. */
unsigned cause_scope_of(const struct evidence *evidence);
/* Do its needs hold, as far as they are known? The first one must be. unknown: how many are not. */
bool cause_applies(const struct cause_rule *rule, const struct evidence *evidence,
		   unsigned *unknown);

/* The two best answers, and how sure each is. */
struct ranking {
	const struct cause_rule *best, *next;
	double best_score, next_score;
};

/* The score of one rule; 0: ruled out. */
double cause_score(const struct cause_rule *rule, const struct evidence *evidence);
/* The verdict, in the arena of the run; NULL: no rule applies, so nothing is wrong. */
const struct fact_cause *cause_judge(const struct evidence *evidence);
struct event_pass;
/* incident.cause and facts.cause: the last pass, it reads what all the others filled. heard: by
 * process, what heard the second sweep about its fatal incident; NULL in it: nobody. */
void build_causes(struct facts *facts, struct event_pass **heard);

/* What to do, best first; in the arena. */
const struct fact_fix *cause_fixes(const struct evidence *evidence, const char *id, size_t *count);

/* What would have happened without each thing that was in the way; what buys most first. */
const struct fact_counterfactual *cause_without(const struct evidence *evidence, size_t *count);

/* "492 MiB was missing; without the leak (5.69 GiB) it fits, and nothing else grows"; NULL: it is
 * not enough, or no option. */
const char *cause_inequality(const struct evidence *evidence, enum removed what);

/* One row of the advice, for help. */
struct cause_advice {
	const char *cause, *framework, *knob, *words;
};
/* Whether a row's causes, one or with a star the beginning of several ("S3*"), have this one. */
bool cause_fits(const char *id, const char *causes);
/* False: index is beyond the last row. */
bool cause_advice_row(size_t index, struct cause_advice *out);
