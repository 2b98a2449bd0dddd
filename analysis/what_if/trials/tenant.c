/* SPDX-License-Identifier: Apache-2.0 */
/* The device without what other processes have of it. */
#include "analysis/base/numbers.h"
#include "analysis/what_if/trials/work.h"

struct trace *without_others(const struct trace *trace, const struct trial *trial,
			     struct arena *arena, const char **why_not)
{
	struct trace *changed;

	if (!is_known(trace->others_bytes) || !is_known(trace->capacity_bytes)) {
		*why_not = "the recording does not show what other processes had";
		return NULL;
	}
	if (!trace->others_bytes) {
		*why_not = "no other process had memory of the device";
		return NULL;
	}
	changed = trace_copy(trace);
	changed->capacity_bytes +=
		(uint64_t)((double)trace->others_bytes * (1 - trial->argument));
	return changed;
}
