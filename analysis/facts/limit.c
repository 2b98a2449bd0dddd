/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/facts/limit.h"

#include "interpose/abi/format.h"

/* malloc asks the kernel for this much at least, when it has nothing left. */
#define LEAST_BYTES ((uint64_t)1 << 20)

const struct fact_limit_words fact_limit_words[LIMIT_MAX] = {
	[LIMIT_ADDRESS] = { "address_space", "addresses", "ulimit -v",
			    "ulimit -v, or LimitAS= of its service" },
	[LIMIT_DATA] = { "private_data", "private memory", "ulimit -d",
			 "ulimit -d, or LimitDATA= of its service" },
};

static bool is_beyond(const struct fact_limit *limit, uint64_t bytes)
{
	if (limit->max_bytes == CUF_UNKNOWN || limit->used_bytes == CUF_UNKNOWN)
		return false;
	return limit->used_bytes > limit->max_bytes || bytes > limit->max_bytes - limit->used_bytes;
}

enum fact_limit_kind fact_limit_refused(const struct fact_limit *limits, uint64_t requested_bytes,
					bool is_mapped)
{
	uint64_t bytes = requested_bytes < LEAST_BYTES ? LEAST_BYTES : requested_bytes;
	enum fact_limit_kind lowest = LIMIT_NONE;

	if (requested_bytes == CUF_UNKNOWN)
		return LIMIT_NONE;
	for (enum fact_limit_kind kind = LIMIT_ADDRESS; kind < LIMIT_MAX; kind++) {
		if ((kind == LIMIT_ADDRESS && is_mapped) || !is_beyond(&limits[kind], bytes))
			continue;
		if (lowest == LIMIT_NONE || limits[kind].max_bytes < limits[lowest].max_bytes)
			lowest = kind;
	}
	return lowest;
}
