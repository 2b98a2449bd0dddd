/* SPDX-License-Identifier: Apache-2.0 */
/* Reads four figures from /proc/self/cgroup and /sys/fs/cgroup. */
#include "analysis/cmd/target/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define V1_ROOT "/sys/fs/cgroup/memory"
#define V2_ROOT "/sys/fs/cgroup"
/* v1 has no word for "no limit": it reports the largest multiple of a page, of 64 KiB at most. */
#define V1_NO_LIMIT (INT64_MAX >> 16 << 16)

/* The number after "key " in a file of "key value" lines; without key, the file's only number. */
static uint64_t read_cgroup_number(const char *path, const char *key)
{
	char line[256];
	uint64_t value = CUF_UNKNOWN;
	size_t length = 0;
	FILE *file = fopen(path, "re");

	if (key)
		length = strlen(key);
	while (file && value == CUF_UNKNOWN && fgets(line, sizeof line, file)) {
		const char *number = line + length + (key != NULL);
		if (key && (strncmp(line, key, length) != 0 || line[length] != ' '))
			continue;
		if (*number >= '0' && *number <= '9')
			value = strtoull(number, NULL, 10);
	}
	if (file)
		fclose(file);
	return value;
}

/* This process's path in a hierarchy: what follows "0::" (v2) or ":memory:" (v1). */
static bool find_own_path(const char *mark, char *out, size_t bytes)
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

/*
 * In a container, the path may be the host's while the container's cgroup is mounted as the root.
 * The root is therefore the second choice.
 */
static uint64_t read_at(const char *root, const char *path, const char *name, const char *key)
{
	char full[2 * PATH_MAX];
	uint64_t value;

	snprintf(full, sizeof full, "%s%s/%s", root, path, name);
	value = read_cgroup_number(full, key);
	if (value != CUF_UNKNOWN || !*path)
		return value;
	snprintf(full, sizeof full, "%s/%s", root, name);
	return read_cgroup_number(full, key);
}

/* usage_in_bytes includes page cache, as memory.current does. */
static void read_v1(struct cgroup_memory *memory, const char *path)
{
	memory->limit_bytes = read_at(V1_ROOT, path, "memory.limit_in_bytes", NULL);
	memory->current_bytes = read_at(V1_ROOT, path, "memory.usage_in_bytes", NULL);
	memory->oom_kills = read_at(V1_ROOT, path, "memory.oom_control", "oom_kill");
	if (memory->limit_bytes >= V1_NO_LIMIT)
		memory->limit_bytes = CUF_UNKNOWN;
}

/* memory.events counts the kills of this cgroup and of those below it. */
static void read_v2(struct cgroup_memory *memory, const char *path)
{
	memory->limit_bytes = read_at(V2_ROOT, path, "memory.max", NULL); /* "max": unknown */
	memory->current_bytes = read_at(V2_ROOT, path, "memory.current", NULL);
	memory->oom_kills = read_at(V2_ROOT, path, "memory.events", "oom_kill");
}

/* Where read_at finds this file. */
static void find_directory(struct cgroup_memory *memory, const char *root, const char *path,
			   const char *name)
{
	char full[2 * PATH_MAX];

	snprintf(full, sizeof full, "%s%s/%s", root, path, name);
	if (access(full, R_OK))
		path = "";
	snprintf(memory->directory, sizeof memory->directory, "%s%s", root, path);
}

/* Unknown figures stay CUF_UNKNOWN: no cgroup file system, no limit, or an old kernel. */
void cgroup_read(struct cgroup_memory *memory)
{
	char path[PATH_MAX];

	memory->limit_bytes = memory->current_bytes = memory->oom_kills = CUF_UNKNOWN;
	*memory->directory = 0;
	memory->system_oom_kills = read_cgroup_number("/proc/vmstat", "oom_kill");
	/* hybrid systems list v2 too, but without the memory controller */
	if (find_own_path(":memory:", path, sizeof path) &&
	    read_at(V1_ROOT, path, "memory.usage_in_bytes", NULL) != CUF_UNKNOWN) {
		read_v1(memory, path);
		find_directory(memory, V1_ROOT, path, "memory.usage_in_bytes");
	} else if (find_own_path("0::", path, sizeof path)) {
		read_v2(memory, path);
		find_directory(memory, V2_ROOT, path, "memory.current");
	}
}
