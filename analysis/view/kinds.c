/* SPDX-License-Identifier: Apache-2.0 */
/* Words, one table each. */
#include "analysis/view/kinds.h"

#include <string.h>

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
