/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/cgroup and /sys/fs/cgroup to four figures. */
#include "analysis/cmd/target/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value behind "key " in a file of "key value" lines, or the whole file's number when key is NULL. */
static uint64_t read_number(const char *path, const char *key)
{
	char line[256];
	uint64_t value = CUF_UNKNOWN;
	size_t length = key ? strlen(key) : 0;
	FILE *file = fopen(path, "re");
	while (file && value == CUF_UNKNOWN && fgets(line, sizeof line, file)) {
		const char *number = line + length + (key != NULL);
		if ((!key || (!strncmp(line, key, length) && line[length] == ' ')) && *number >= '0' && *number <= '9')
			value = strtoull(number, NULL, 10);
	}
	if (file)
		fclose(file);
	return value;
}

/* The path behind "0::" (v2) or ":memory:" (v1). */
static bool own_path(const char *mark, char *out, size_t bytes)
{
	char line[PATH_MAX];
	bool found = false;
	FILE *file = fopen("/proc/self/cgroup", "re");
	while (file && !found && fgets(line, sizeof line, file)) {
		const char *at = strstr(line, mark);
		if (!at)
			continue;
		line[strcspn(line, "\n")] = 0;
		at += strlen(mark);
		snprintf(out, bytes, "%s", strcmp(at, "/") ? at : "");
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

/* In a container the path may be the host's while our own cgroup is mounted as the root. */
static uint64_t read_in(const char *root, const char *path, const char *name, const char *key)
{
	char full[2 * PATH_MAX];
	uint64_t value;
	snprintf(full, sizeof full, "%s%s/%s", root, path, name);
	value = read_number(full, key);
	if (value != CUF_UNKNOWN || !*path)
		return value;
	snprintf(full, sizeof full, "%s/%s", root, name);
	return read_number(full, key);
}

void cgroup_read(struct cgroup_memory *memory)
{
	static const char v2[] = "/sys/fs/cgroup", v1[] = "/sys/fs/cgroup/memory";
	char path[PATH_MAX];
	memory->limit_bytes = memory->current_bytes = memory->oom_kills = CUF_UNKNOWN;
	memory->system_oom_kills = read_number("/proc/vmstat", "oom_kill");
	if (own_path(":memory:", path, sizeof path) && read_in(v1, path, "memory.usage_in_bytes", NULL) != CUF_UNKNOWN) {
		memory->limit_bytes = read_in(v1, path, "memory.limit_in_bytes", NULL);
		memory->current_bytes = read_in(v1, path, "memory.usage_in_bytes", NULL);
		memory->oom_kills = read_in(v1, path, "memory.oom_control", "oom_kill");
		if (memory->limit_bytes >= INT64_MAX / 4096 * 4096)
			memory->limit_bytes = CUF_UNKNOWN; /* v1's word for none */
	} else if (own_path("0::", path, sizeof path)) {
		memory->limit_bytes = read_in(v2, path, "memory.max", NULL); /* "max": unknown */
		memory->current_bytes = read_in(v2, path, "memory.current", NULL);
		memory->oom_kills = read_in(v2, path, "memory.events", "oom_kill");
	}
}
