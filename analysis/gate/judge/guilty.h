/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sites that a measure is about, worst first: those that hold more than in the baseline,
 * that leak, that keep memory from being used, or that failed.
 *
 * Contract: the result is in the arena of the run, with names and figures filled and `rule` set by
 * suppress, which may be NULL. At most GUILTY_MAX.
 */
#ifndef ANALYSIS_GATE_GUILTY_H
#define ANALYSIS_GATE_GUILTY_H

#include "analysis/gate/judge/check.h"
#include "analysis/gate/judge/compared.h"

enum { GUILTY_MAX = 256 };

struct gate_site *guilty_sites(const struct compared *compared,
			       const struct gate_question *question,
			       const struct gate_measure *measure, size_t *count);
/* What a site adds to its measure: what it holds more than before. */
uint64_t guilty_weight(const struct gate_site *site);

#endif
