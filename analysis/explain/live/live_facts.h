/* SPDX-License-Identifier: Apache-2.0 */
/* What memory did lately. Contract: after facts_assemble; in the arena of the facts. */
#pragma once

#include "analysis/facts/facts.h"

/* processes[].recent */
void build_recent(struct facts *facts);
/* judgement; of a run that still runs, whatever is not judged yet is no leak any more. warm_up_s:
 * as in facts_options. After build_recent. */
void build_judgement(struct facts *facts, double warm_up_s);
