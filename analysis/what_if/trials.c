/* SPDX-License-Identifier: Apache-2.0 */
/* A list of trials; trials_collect.c fills it. */
#include "analysis/what_if/trials.h"

#include "analysis/base/numbers.h"

/* What is smaller than this share of the device is not what fills it. */
#define NOTABLE_SHARE 0.1

const char *const trial_kind_names[TRIAL_MAX] = { "recorded", "setting", "allocator", "work" };

void trials_add(struct trials *trials, struct trial trial)
{
	xalloc_grow(&trials->rows, trials->count, &trials->room, sizeof *trials->rows);
	trials->rows[trials->count++] = trial;
}

bool trials_is_notable(const struct trace *trace, uint64_t bytes)
{
	return !is_known(trace->capacity_bytes) ||
	       (double)bytes >= NOTABLE_SHARE * (double)trace->capacity_bytes;
}
