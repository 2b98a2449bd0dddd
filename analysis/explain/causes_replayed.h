/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice that was played: a setting stands in it only where its replay fits, with the room that it
 * leaves. Contract: changes the list in place; texts are in the arena of the run. Without a replay
 * of this incident, or where the replay is unlike the recording, the advice stays as it is.
 */
#pragma once

#include "analysis/facts/cause.h"
#include "analysis/explain/evidence/evidence.h"

/* fixes has room for fixes_max; id: of the cause. */
void fixes_replay(const struct evidence *evidence, const char *id,
		  struct fact_fix *fixes, size_t *count, size_t fixes_max);
