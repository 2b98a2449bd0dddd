/* SPDX-License-Identifier: Apache-2.0 */
/* Words, one table each. */
#include "analysis/facts/kinds.h"

#include <math.h>
#include <string.h>
#include "analysis/facts/host.h"
#include "analysis/facts/live.h"
#include "analysis/facts/moment.h"

/* ---- as in the JSON ---- */

const char *const owner_names[OWNER_MAX] = {
	[OWNER_DEVICE] = "device",
	[OWNER_ARRAY] = "array",
	[OWNER_ASYNC] = "async",
	[OWNER_GRAPH] = "graph",
	[OWNER_VMM] = "vmm",
	[OWNER_IMPORTED] = "imported",
	[OWNER_PAGE_ROUNDING] = "page_rounding",
	[OWNER_POOL_SLACK] = "pool_slack",
	[OWNER_FRAMEWORK_SLACK] = "framework_slack",
	[OWNER_OTHER_PROCESSES] = "other_processes",
	[OWNER_CONTEXT] = "context",
	[OWNER_UNEXPLAINED] = "unexplained",
	[OWNER_FREE] = "free",
	[OWNER_MANAGED] = "managed",
};

const char *const class_names[CLASS_MAX] = { "leak", "growing", "live", "bounded_cache",
					     "retained" };

const char *const end_names[END_MAX] = {
	"running", "exit", "signal", "killed", "oom_killed", "exec", "unknown"
};

const char *const outcome_names[OUTCOME_MAX] = { "fatal", "recovered", "handled", "unknown" };

const char *const basis_names[BASIS_MAX] = { "", "observed", "inferred", "estimated" };

const char *const moment_names[MOMENT_MAX] = { "incident", "end", "at", "now" };

const char *const host_part_names[PART_MAX] = { "malloc_live",	 "fragmented",	  "cached",
						"allocator",	 "python_objects",
						"python_arenas", "maps",
						"other",	 "stack",	  "files",
						"files_private", "shared",	  "recorder" };

const char *const host_verdict_names[HOST_VERDICT_MAX] = { "", "fine", "fragmented", "cached" };

const char *const host_fix_names[FIX_MAX] = { "malloc_trim", "MALLOC_ARENA_MAX", "separate",
					      "jemalloc", "decay" };

const char *const live_state_names[LIVE_STATES] = { "warming", "steady", "filling", "growing",
						    "leak" };
const char *const live_resource_names[LIVE_RESOURCES] = { "gpu", "cgroup", "machine" };
const char *const live_resource_words[LIVE_RESOURCES] = { "GPU", "cgroup", "machine" };

const struct live_resource *live_first_to_end(const struct live_resource *resources, size_t count)
{
	const struct live_resource *first = NULL;

	for (size_t i = 0; i < count; i++)
		if (isfinite(resources[i].oom_s[LIVE_EXPECTED]) &&
		    (!first || resources[i].oom_s[LIVE_EXPECTED] < first->oom_s[LIVE_EXPECTED]))
			first = &resources[i];
	return first;
}

/* ---- kinds, roles and trends ---- */

const char *const kind_names[CUF_KIND_MAX] = {
	[CUF_KIND_DEVICE] = "device",
	[CUF_KIND_MANAGED] = "managed",
	[CUF_KIND_PINNED] = "pinned",
	[CUF_KIND_REGISTERED] = "registered",
	[CUF_KIND_ASYNC] = "async",
	[CUF_KIND_GRAPH] = "graph",
	[CUF_KIND_VMM] = "vmm",
	[CUF_KIND_ARRAY] = "array",
	[CUF_KIND_IMPORTED] = "imported",
	[CUF_KIND_HOST] = "host",
	[CUF_KIND_FRAMEWORK] = "framework",
	[CUF_KIND_MAPPING] = "mapping",
	[CUF_KIND_RESERVATION] = "reservation",
	[CUF_KIND_POOL] = "pool",
	[CUF_KIND_CONTEXT] = "context",
};

const char *kind_name(uint32_t kind)
{
	return kind < CUF_KIND_MAX ? kind_names[kind] : NULL;
}

/* "framework" and "device" would mean nothing to a reader. */
const char *kind_word(uint32_t kind)
{
	if (kind == CUF_KIND_FRAMEWORK)
		return "tensor";
	if (kind == CUF_KIND_DEVICE)
		return "GPU";
	return kind_name(kind) ? kind_name(kind) : "?";
}

static const struct { const char *role, *word; } roles[] = {
	{ "kv", "KV cache" }, { "communication", "comms" }, { "graph", "graphs" },
	{ "activations", "activation" },
};

bool role_word_at(size_t index, const char **role, const char **word)
{
	if (index >= sizeof roles / sizeof *roles)
		return false;
	*role = roles[index].role;
	*word = roles[index].word;
	return true;
}

const char *role_word(const char *role)
{
	for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
		if (!strcmp(roles[i].role, role))
			return roles[i].word;
	return role ? role : "";
}

const char *shape_word(enum fact_shape shape)
{
	static const char *const words[SHAPE_MAX] = {
		[SHAPE_NONE] = "", [SHAPE_LINEAR] = "growing", [SHAPE_GEOMETRIC] = "growing",
		[SHAPE_QUADRATIC] = "growing", [SHAPE_PLATEAU] = "steady",
	};
	return words[shape];
}
