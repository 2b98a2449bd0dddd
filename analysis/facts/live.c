/* SPDX-License-Identifier: Apache-2.0 */
/* Names of states and resources. */
#include "analysis/facts/live.h"

const char *const live_state_names[LIVE_STATES] = { "warming", "steady", "filling", "growing",
						    "leak" };
const char *const live_resource_names[LIVE_RESOURCES] = { "gpu", "cgroup", "machine" };
const char *const live_resource_words[LIVE_RESOURCES] = { "GPU", "cgroup", "machine" };
