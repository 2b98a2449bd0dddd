/* SPDX-License-Identifier: Apache-2.0 */
/* memory.events of cgroup v2, memory.oom_control of v1. */
#include "analysis/replay/group_kills.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/process_life.h"

/* The count now; CUF_UNKNOWN: no such file, or no count in it. */
static uint64_t count_now(const char *directory, const char *name)
{
	static const char key[] = "oom_kill ";
	uint64_t count = CUF_UNKNOWN;
	char path[PATH_MAX], line[128];
	FILE *f;
	if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path ||
	    !(f = fopen(path, "re")))
		return CUF_UNKNOWN;
	while (count == CUF_UNKNOWN && fgets(line, sizeof line, f))
		if (!strncmp(line, key, sizeof key - 1))
			count = strtoull(line + sizeof key - 1, NULL, 10);
	fclose(f);
	return count;
}

bool group_is_below_root(const char *directory)
{
	static const char root[] = "/sys/fs/cgroup/", memory[] = "memory";
	if (!directory || strncmp(directory, root, sizeof root - 1) != 0 || strstr(directory, ".."))
		return false;
	return strcmp(directory + sizeof root - 1, memory) != 0;
}

uint64_t group_kills_since_start(const struct reader *reader, const struct meta *meta)
{
	const char *directory = meta_text(meta, CUF_META_CGROUP);
	uint64_t before = meta_limit(meta, "oom_kill"), now;
	if (before == CUF_UNKNOWN || !group_is_below_root(directory) ||
	    !is_this_boot(&reader->header))
		return CUF_UNKNOWN;
	now = count_now(directory, "memory.events");
	if (now == CUF_UNKNOWN)
		now = count_now(directory, "memory.oom_control");
	return now == CUF_UNKNOWN ? now : subtract_to_zero(now, before);
}

enum kill_sender kill_sender_of(uint64_t in_group, uint64_t on_machine)
{
	if (in_group != CUF_UNKNOWN)
		return in_group ? KILL_BY_KERNEL : KILL_BY_ANOTHER;
	if (on_machine != CUF_UNKNOWN)
		return on_machine ? KILL_BY_KERNEL_PROBABLY : KILL_BY_ANOTHER;
	return KILL_UNKNOWN;
}
