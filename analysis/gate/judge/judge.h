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
#ifndef ANALYSIS_GATE_JUDGE_H
#define ANALYSIS_GATE_JUDGE_H

#include "analysis/gate/finding.h"

#define JUDGE_DEVIATIONS 3.0
#define JUDGE_SIGMA_OF_MAD 1.4826

/* The figure that the limit comes to; CUF_UNKNOWN: relative without a baseline. */
uint64_t judge_allowed(const struct gate_limit *limit, const struct gate_spread *baseline);
enum gate_status judge(const struct gate_limit *limit, const struct gate_value *value,
		       uint64_t allowed);

#endif
