/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be the same in two runs before their memory can be compared.
 *
 * Contract: texts are in the arena; facts are borrowed during the call. A part that one side does
 * not know makes no difference. environment_difference returns a sentence, or NULL where the two
 * are comparable; versions of frameworks differ without making a comparison useless, so
 * environment_remark has a sentence for those.
 */
#ifndef ANALYSIS_GATE_ENVIRONMENT_H
#define ANALYSIS_GATE_ENVIRONMENT_H

#include "analysis/gate/finding.h"

struct facts;

void environment_take(const struct facts *facts, struct arena *arena,
		      struct gate_environment *out);
const char *environment_difference(const struct gate_environment *baseline,
				   const struct gate_environment *now, struct arena *arena);
const char *environment_remark(const struct gate_environment *baseline,
			       const struct gate_environment *now, struct arena *arena);

#endif
