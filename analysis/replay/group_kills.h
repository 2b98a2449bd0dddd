/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel's OOM killer ran in the control group of a recorded process, and what that
 * shows of a kill.
 *
 * Contract: group_kills_since_start reads a file of /sys/fs/cgroup, where the recording is of this
 * boot of this machine and names a group below the root: what another container calls the root is
 * another group here. CUF_UNKNOWN: it cannot be known here, or any more.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/meta.h"

/* A recording may name any path: only those of groups are opened, and no root is one. */
bool group_is_below_root(const char *directory);

/* Processes of the group that were killed since the recording began. */
uint64_t group_kills_since_start(const struct reader *reader, const struct meta *meta);

enum kill_sender {
	KILL_BY_KERNEL,          /* the count of its own group rose */
	KILL_BY_KERNEL_PROBABLY, /* its group has no count, and the machine's rose */
	KILL_BY_ANOTHER,         /* a count that would have risen did not */
	KILL_UNKNOWN
};
/*
 * Of a process that SIGKILL ended: who sent it. The arguments are rises of oom_kill while it ran,
 * or CUF_UNKNOWN. The machine's count is of all groups, so that it counts only where the group's
 * own is not known.
 */
enum kill_sender kill_sender_of(uint64_t in_group, uint64_t on_machine);
