/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frameworks keep of a device: fragmentation.frameworks, the slack inside their segments, and
 * what each live block is for. Contract: called for one process on one device at one moment, after
 * usage_measure; fills the usage's fragmentation.frameworks, slack and roles. Rows go to the arena;
 * live is of that moment.
 */
#pragma once

#include "analysis/facts/passes/passes.h"
#include "analysis/measure/framework_map.h"

struct framework_question {
	uint32_t process;
	unsigned device; /* ordinal in that process */
	uint64_t seq;
	uint64_t requested_bytes; /* what failed at that moment; CUF_UNKNOWN */
	const struct cuf_incident *incident; /* of that process at that moment; NULL */
	struct replay_exact exact;
	bool with_roles; /* the rows of this process will be shown one by one */
};

void framework_facts(const struct facts *facts, struct block_memory *memory,
		     const struct framework_question *question, const struct liveset *live,
		     struct usage *usage);

/* Other allocators whose interior is not seen: a row for each that holds blocks of this device. See
 * framework_regions.c. */
struct framework_regions {
	struct fact_framework *items;
	size_t count;
};
struct framework_regions framework_regions_of(const struct facts *facts, uint32_t process,
					      const struct framework_map *map, bool pytorch_seen);
