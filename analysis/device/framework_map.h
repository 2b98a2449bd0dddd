/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blocks of a framework are: the live blocks of one device that its allocator reported
 * (kind FRAMEWORK), the ranges of memory that may be its segments (blocks of the driver, and runs
 * of mapped addresses), and which block is in which range.
 *
 * Contract: heap memory, freed by framework_map_fini. Blocks and ranges are sorted by address; a
 * range has the blocks [first, first + count). Blocks are cut at 2^58. A block in no range has
 * range FACT_NONE. framework_segments.h decides which ranges are segments.
 */
#ifndef ANALYSIS_DEVICE_FRAMEWORK_MAP_H
#define ANALYSIS_DEVICE_FRAMEWORK_MAP_H

#include "analysis/device/holes.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/liveset.h"

struct framework_block {
	uint64_t addr, bytes, time_ns;
	uint32_t stack;
	uint32_t range;           /* index; FACT_NONE */
	uint8_t role;             /* enum cuf_role */
};

struct framework_range {              /* of 1 MiB and more: no framework asks for less at a time */
	uint64_t addr, bytes;
	uint64_t seq, time_ns;    /* of its block, of its first mapping */
	uint32_t stack;           /* of its block, of its reservation */
	uint8_t kind;             /* enum cuf_kind; MAPPING: a run */
	uint64_t reservation;     /* of a run: the address of what it lies in; 0 none */
	uint64_t piece_bytes;     /* of a run: its largest mapping */
	bool grows;               /* of a run: addresses to spare, or mapped in pieces */
	size_t first, count;      /* its blocks */
	uint64_t live_bytes;      /* of them */
	bool is_segment;          /* the framework's; false until it is marked */
};

struct framework_map {
	struct framework_block *blocks; size_t block_count;
	struct framework_range *ranges; size_t range_count;
};

void framework_map_make(const struct device_blocks *blocks, struct framework_map *out);
void framework_map_fini(struct framework_map *map);

#endif
