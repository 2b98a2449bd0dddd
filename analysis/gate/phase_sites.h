/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sites behind the figures of one phase. Contract: phase_sites_read fills sites and
 * site_count of a use whose amounts are known, in the arena; at most PHASE_SITES_MAX a group and
 * moment.
 */
#ifndef ANALYSIS_GATE_PHASE_SITES_H
#define ANALYSIS_GATE_PHASE_SITES_H

#include "analysis/gate/phase_use.h"
#include "analysis/phases/phases.h"

enum { PHASE_SITES_MAX = 10 };

void phase_sites_read(struct phase_use *use, const struct run_process *process,
		      const struct phase_span *span, struct arena *arena);

#endif
