/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel's OOM killer ran while the command did. SIGKILL has no sender on record, so
 * these counters are the evidence. Contract: CUF_UNKNOWN where the kernel has no such counter.
 * oom_kills_of is for one recording of the run: its process may have entered another control group
 * than ours, and then only the count of that one is about it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "analysis/cmd/target/cgroup.h"

struct oom_kills {
	uint64_t in_cgroup, on_machine;
	uint64_t limit_bytes;      /* of the cgroup */
	const char *directory;     /* of the cgroup, borrowed from `before` */
};

struct oom_kills oom_kills_since(const struct cgroup_memory *before);

struct oom_kills oom_kills_of(const char *recording, const struct oom_kills *own);

/* True when the counter is known and has risen. */
bool oom_kills_any(uint64_t rise);
