/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of the OOM killer's counters. */
#include "analysis/cmd/run/oom_kills.h"

static uint64_t rise_of(uint64_t before, uint64_t now)
{
	if (before == CUF_UNKNOWN || now == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return now > before ? now - before : 0;
}

struct oom_kills oom_kills_since(const struct cgroup_memory *before)
{
	struct cgroup_memory now;

	cgroup_read(&now);
	return (struct oom_kills){
		.in_cgroup = rise_of(before->oom_kills, now.oom_kills),
		.on_machine = rise_of(before->system_oom_kills, now.system_oom_kills),
		.limit_bytes = now.limit_bytes,
	};
}

bool oom_kills_any(uint64_t rise)
{
	return rise && rise != CUF_UNKNOWN;
}
