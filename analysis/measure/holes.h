/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory between live blocks: inside 2 MiB pages, between the blocks of a pool, inside
 * reserved addresses. Everything follows from a live set, so it is exact for the moment of that
 * set.
 *
 * Contract: results of unbounded size go to the arena. Stacks have id and process only; the caller
 * fills the rest. The edges of a page end a hole. Blocks are cut at 2^58 and overlapping ones
 * count once, so sums cannot overflow.
 */
#pragma once

#include "analysis/measure/fragmentation.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/driver_state.h"
#include "analysis/replay/liveset.h"
#include "analysis/base/xalloc.h"

/* What one process has on one device at one moment. */
struct device_blocks {
	const struct reader *reader; /* of the recording, for reader_call_site */
	const struct liveset *live;
	unsigned device;             /* the driver's ordinal in that process */
	uint32_t process;            /* index, for the stacks of the rows */
};

struct page_facts {
	uint64_t block_count;     /* cuMemAlloc blocks */
	uint64_t block_bytes;     /* as requested */
	uint64_t touched_bytes;   /* of all pages they touch */
};

/* 2 MiB pages: fills the page fields, hole_count, hole_bytes and pins of *out. */
struct page_facts holes_pages(const struct device_blocks *blocks, struct arena *arena,
			      struct fact_fragmentation *out);

/* What is lost by rounding large blocks up, where no other block is in the last page. No order of
 * allocations would make it available. */
uint64_t holes_rounded(const struct liveset *live, unsigned device);

/* One row for each pool of this device that has blocks or a report of the driver, with its gaps
 * measured. Fills pools. */
void holes_pools(const struct device_blocks *blocks, const struct pool_level *levels,
		 size_t level_count, struct arena *arena, struct fact_fragmentation *out);

/* VMM: reservations, mappings, physical handles. Fills the vmm fields. */
void holes_vmm(const struct device_blocks *blocks, struct arena *arena,
	       struct fact_fragmentation *out);

/* The largest free range of each layer that a fragmentation record has. LAYER_DEVICE, MEASURED,
 * SEGMENT and HOST stay unknown. */
void holes_layers(const struct fact_fragmentation *fragmentation, const struct page_facts *pages,
		  struct fact_layer layers[LAYER_MAX]);

/* For qsort of struct fact_pin: the worst first. Equal ones are ordered by stack, so that a report
 * is reproducible. */
int pins_by_open_bytes(const void *a, const void *b);

/* A live block as far as holes need it. */
struct span {
	uint64_t addr, bytes;
	uint64_t aux; /* as in struct cuf_block: the pool of ASYNC, the handle of MAPPING */
	uint32_t stack;
	uint8_t device;
};

/* The blocks of one kind on one device (CUF_DEVICE_NONE: any), without those located on the host.
 * Sorted by address, ASYNC by pool and address. Heap memory; count may be 0. */
struct span *holes_collect(const struct liveset *live, unsigned kind, unsigned device,
			   size_t *count);
