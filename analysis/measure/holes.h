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

#include <stdbool.h>
#include "analysis/base/xalloc.h"
#include "analysis/recording/fact_types.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/driver_state.h"
#include "analysis/replay/liveset.h"

/*
 * Free memory of one device that is inside what a process holds: in 2 MiB pages, in memory pools,
 * in reserved addresses, and in the segments of frameworks.
 *
 * Contract: plain data, in the arena of the run. Figures are bytes and counts of this process's
 * blocks; unknown is CUF_UNKNOWN. An array and its count are one pair; an empty one may be NULL.
 */

/* The layers at which a largest free block can be stated. */
enum fact_layer_id {
	LAYER_DEVICE,
	LAYER_MEASURED,
	LAYER_PAGE,
	LAYER_POOL,
	LAYER_VMM,
	LAYER_SEGMENT,
	LAYER_HOST,
	LAYER_MAX
};

/* A call site whose blocks keep pages or segments from being released. */
struct fact_pin {
	struct fact_stack stack;
	uint64_t pages;      /* pages that its blocks share in keeping */
	uint64_t open_bytes; /* free bytes in those pages */
	uint64_t bytes;      /* of its blocks in them */
	uint64_t count;
};

struct fact_pool {
	uint32_t process;
	uint64_t pool; /* handle; 0: the graph pool */
	/* as the driver reported them */
	uint64_t reserved_bytes;
	uint64_t used_bytes;
	uint64_t threshold_bytes; /* free memory that it keeps at a synchronisation */
	/* of the recorded blocks in it */
	uint64_t live_bytes, live_count;
	uint64_t largest_gap_bytes;      /* between live blocks; unknown with fewer than two */
	enum fact_basis basis;
};

/* One reservation of addresses (cuMemAddressReserve). */
struct fact_vmm {
	uint32_t process;
	uint64_t addr, bytes;
	uint64_t mapped_bytes, map_count;
	uint64_t largest_unmapped_bytes; /* the end of the reservation included */
	struct fact_stack stack;
};

/* A device block, or a mapped run of addresses, that a framework's allocator splits into blocks. */
struct fact_segment {
	uint32_t process;
	uint64_t addr, bytes;
	uint64_t live_bytes, live_count; /* of the blocks inside */
	uint64_t largest_hole_bytes, hole_count;
	uint64_t serves_least_bytes; /* requests that its pool serves; unknown: no bound */
	uint64_t serves_most_bytes;
	bool expandable;             /* mapped in pieces: it can grow at its end */
	uint64_t born_ns;            /* CLOCK_MONOTONIC until device_facts.c has filled the stack */
	struct fact_stack stack;     /* who allocated it */
};

/* The allocator of one framework on one device. */
struct fact_framework {
	uint32_t process;
	const char *name, *version, *backend; /* "PyTorch", "2.9.0", "native"; "" unknown */
	uint64_t allocated_bytes;             /* as last reported before the moment */
	uint64_t reserved_bytes;
	uint64_t placed_bytes;                /* live blocks in known segments */
	enum fact_basis basis;
	const struct fact_segment *segments;  /* by free bytes, descending */
	size_t segment_count;
	const struct fact_pin *pins;          /* sites that keep segments alive, by open_bytes */
	size_t pin_count;
	/* over the segments that could serve the failed request of the moment, else over all */
	struct fact_layer largest_hole;
	uint64_t emptyable_bytes; /* segments of which less than a tenth is used */
	uint64_t empty_bytes;     /* segments without a block: could be released as they are */
};

/* Class i counts holes of [512 << i, 1024 << i) bytes; the first and the last are open-ended. */
#define FACT_HOLE_CLASSES 13

struct fact_fragmentation {
	uint64_t pages;           /* 2 MiB pages with a small block or the tail of a large one */
	uint64_t pages_partial;   /* of those, not full */
	uint64_t pages_sparse;    /* of those, less than a tenth used */
	uint64_t page_free_bytes; /* free bytes in them */
	uint64_t page_largest_hole_bytes;
	uint64_t hole_count[FACT_HOLE_CLASSES], hole_bytes[FACT_HOLE_CLASSES];
	const struct fact_pin *pins; /* by open_bytes, descending */
	size_t pin_count;
	const struct fact_pool *pools;
	size_t pool_count;
	const struct fact_vmm *vmm;
	size_t vmm_count;
	uint64_t vmm_held_bytes;     /* physical memory, mapped or not */
	uint64_t vmm_mapped_bytes;
	uint64_t vmm_unmapped_bytes; /* physical memory that is mapped nowhere */
	const struct fact_framework *frameworks;
	size_t framework_count;
	enum fact_basis basis;
};

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
