/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where free memory hides between live blocks: inside 2 MiB pages, between the blocks of a pool, inside reserved
 * addresses. Everything is worked out of a live set, so it is exact for the moment of that set.
 *
 * Contract: device is the driver's ordinal in that process; results of unbounded size go to the arena; stacks carry
 * id and process alone (the caller fills the rest). A page's edges count as ends of a hole. Sums saturate nowhere:
 * blocks are cut at 2^58, overlapping ones are counted once.
 */
#ifndef ANALYSIS_DEVICE_HOLES_H
#define ANALYSIS_DEVICE_HOLES_H

#include "analysis/device/fragmentation.h"
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

/* Pools: one row for each pool of this device that has blocks or a level in `levels`, gaps measured. Fills pools. */
void holes_pools(const struct device_blocks *blocks, const struct pool_level *levels,
		 size_t level_count, struct arena *arena, struct fact_fragmentation *out);

/* VMM: reservations, mappings, physical handles. Fills the vmm fields. */
void holes_vmm(const struct device_blocks *blocks, struct arena *arena,
	       struct fact_fragmentation *out);

extern const char *const layer_names[LAYER_MAX]; /* "device_upper_bound_bytes", ... */
/* The figures by layer that a fragmentation record gives; LAYER_DEVICE, MEASURED, SEGMENT and HOST are unknown. */
void holes_layers(const struct fact_fragmentation *fragmentation, const struct page_facts *pages,
		  struct fact_layer layers[LAYER_MAX]);

/* Largest class index for a hole of this size. */
unsigned hole_class(uint64_t bytes);

/* A live block as far as holes need it. */
struct span { uint64_t addr, bytes, aux; uint32_t stack; uint8_t device; };
/* Of one kind on one device (CUF_DEVICE_NONE: any), not host-located; sorted by address, ASYNC by pool and address. Heap
 * memory; count may be 0. */
struct span *holes_collect(const struct liveset *live, unsigned kind, unsigned device,
			   size_t *count);

#endif
