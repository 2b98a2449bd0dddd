/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the kinds of blocks, as the JSON has them. */
#include "analysis/view/kinds.h"

#include <stddef.h>
#include "interpose/abi/format.h"

const char *kind_name(uint32_t kind)
{
	static const char *const names[CUF_KIND_MAX] = {
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
	if (kind >= CUF_KIND_MAX)
		return NULL;
	return names[kind];
}
