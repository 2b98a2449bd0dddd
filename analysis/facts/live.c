/* SPDX-License-Identifier: Apache-2.0 */
/* Names of states and resources; which one ends first. */
#include "analysis/facts/live.h"

#include <math.h>

const char *const live_state_names[LIVE_STATES] = { "warming", "steady", "filling", "growing",
						    "leak" };
const char *const live_resource_names[LIVE_RESOURCES] = { "gpu", "cgroup", "machine" };
const char *const live_resource_words[LIVE_RESOURCES] = { "GPU", "cgroup", "machine" };

const struct live_resource *live_first_to_end(const struct live_resource *resources, size_t count)
{
	const struct live_resource *first = NULL;

	for (size_t i = 0; i < count; i++)
		if (isfinite(resources[i].oom_s[LIVE_EXPECTED]) &&
		    (!first || resources[i].oom_s[LIVE_EXPECTED] < first->oom_s[LIVE_EXPECTED]))
			first = &resources[i];
	return first;
}
