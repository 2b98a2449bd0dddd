/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel's OOM killer ran while the command did. SIGKILL has no sender on record, so
 * these counters are the evidence. Contract: CUF_UNKNOWN where the kernel has no such counter.
 */
#ifndef CMD_OOM_KILLS_H
#define CMD_OOM_KILLS_H

#include <stdbool.h>
#include <stdint.h>
#include "analysis/cmd/target/cgroup.h"

struct oom_kills {
	uint64_t in_cgroup, on_machine;
	uint64_t limit_bytes;      /* of the cgroup */
};

struct oom_kills oom_kills_since(const struct cgroup_memory *before);

/* True when the counter is known and has risen. */
bool oom_kills_any(uint64_t rise);

#endif
