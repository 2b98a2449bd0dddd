/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory cgroup of this process, v2 or v1, and how often the kernel's OOM killer ran in it.
 * Contract: reads files only. Bytes and counts; CUF_UNKNOWN where there is no cgroup, no limit, or
 * no such file.
 */
#pragma once

#include <limits.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct cgroup_memory {
	uint64_t limit_bytes, current_bytes;
	uint64_t oom_kills;        /* in this cgroup and below */
	uint64_t system_oom_kills; /* on the whole machine, /proc/vmstat */
	char directory[2 * PATH_MAX];  /* of its files; "": none */
};

void cgroup_read(struct cgroup_memory *memory);
