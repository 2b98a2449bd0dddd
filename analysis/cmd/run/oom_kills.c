/* SPDX-License-Identifier: Apache-2.0 */
/* Differences of the OOM killer's counters. */
#include "analysis/cmd/run/oom_kills.h"

#include <string.h>
#include "analysis/recording/meta.h"
#include "analysis/replay/group_kills.h"

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
		.directory = before->directory,
	};
}

struct oom_kills oom_kills_of(const char *recording, const struct oom_kills *own)
{
	struct oom_kills kills = *own;
	struct arena *arena;
	struct reader *reader;
	struct meta meta;
	const char *directory;

	if (reader_open(recording, &reader, NULL))
		return kills;
	arena = arena_new();
	meta_read(&meta, reader, arena);
	directory = meta_text(&meta, CUF_META_CGROUP);
	if (directory && strcmp(directory, own->directory) != 0) {
		kills.in_cgroup = group_kills_since_start(reader, &meta);
		kills.limit_bytes = meta_limit(&meta, "memory.max");
	}
	arena_free(arena);
	reader_close(reader);
	return kills;
}

bool oom_kills_any(uint64_t rise)
{
	return rise && rise != CUF_UNKNOWN;
}
