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
#pragma once

#include "analysis/measure/holes.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/liveset.h"

struct framework_block {
	uint64_t addr, bytes, time_ns;
	uint32_t stack;
	uint32_t range; /* index; FACT_NONE */
	uint8_t role;   /* enum cuf_role */
};

/* At least 1 MiB, since no framework requests less at a time. A run is a range of adjacent
 * mappings; all others are one block of the driver. */
struct framework_range {
	uint64_t addr, bytes;
	uint64_t seq, time_ns; /* of its block, or of a run's first mapping */
	uint32_t stack;        /* of its block, or of a run's reservation */
	uint8_t kind;          /* enum cuf_kind; MAPPING: a run */
	/* of a run only */
	uint64_t reservation;  /* the address of the reservation that contains it; 0 none */
	uint64_t piece_bytes;  /* its largest mapping */
	bool grows;            /* it was mapped in pieces, or the reservation has more addresses */
	/* of the framework's blocks in it */
	size_t first, count;
	uint64_t live_bytes;
	bool is_segment;       /* the framework's; false until framework_marks_set */
};

struct framework_map {
	struct framework_block *blocks;
	size_t block_count;
	struct framework_range *ranges;
	size_t range_count;
};

/* Reads the live set of one device. Blocks that the host holds are left out. */
void framework_map_make(const struct device_blocks *blocks, struct framework_map *out);
void framework_map_fini(struct framework_map *map);
