/* SPDX-License-Identifier: Apache-2.0 */
/* A list of trials; trials_collect.c fills it. */
#include "analysis/what_if/trials.h"

const char *const trial_kind_names[TRIAL_MAX] = { "recorded", "setting", "allocator", "work" };

void trials_add(struct trials *trials, struct trial trial)
{
	xalloc_grow(&trials->rows, trials->count, &trials->room, sizeof *trials->rows);
	trials->rows[trials->count++] = trial;
}
