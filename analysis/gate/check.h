/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value against one limit. The same bounds give the same answer: nothing here looks at a guess.
 *
 * Absolute: exceeded when even the lowest value that is possible exceeds the limit, ok when even
 * the highest one does not, else inconclusive.
 *
 * Relative: the allowed value is the largest of three: the median of the baseline plus the percent,
 * the median plus the absolute excess, and the end of the baseline's spread. That is the highest of
 * its runs, or JUDGE_DEVIATIONS standard deviations above the median, estimated from the median of
 * absolute deviations.
 *
 * Contract: pure.
 */
#pragma once

#include "analysis/gate/finding.h"

#define JUDGE_DEVIATIONS 3.0
#define JUDGE_SIGMA_OF_MAD 1.4826

/* The figure that the limit comes to; CUF_UNKNOWN: relative without a baseline. */
uint64_t judge_allowed(const struct gate_limit *limit, const struct gate_spread *baseline);
enum gate_status judge(const struct gate_limit *limit, const struct gate_value *value,
		       uint64_t allowed);

/*
 * Judges a run: limits, and a baseline if there is one.
 *
 * Contract: gate_check always fills *out, freed by gate_result_free. facts, symbols and everything
 * else in the question are borrowed and must outlive the result. The path of the facts is read
 * once more, for what was live at each peak.
 */
struct facts;
struct symbols;
struct gate_baseline;

/* Returns the rule that suppresses this call site for this measure; NULL: none. */
typedef const char *gate_suppress(void *context, const struct gate_measure *measure,
				  const struct gate_site *site);

struct gate_question {
	const struct facts *facts;
	struct symbols *symbols;             /* NULL: only the recording's names */
	const struct gate_limits *limits;    /* count 0: the default limits */
	const struct gate_baseline *baseline; /* NULL: none */
	gate_suppress *suppress;             /* NULL: nothing is suppressed */
	void *suppress_context;
	bool any_environment;                /* a baseline of another machine is accepted */
	const char *unused_sections; /* a sentence on limits of a file that are for others; NULL */
	bool nothing_asked;          /* those were all that anybody asked for */
};

void gate_check(const struct gate_question *question, struct gate_result *out);
void gate_result_free(struct gate_result *result);
