/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory of one device that is inside what a process holds: in 2 MiB pages, in memory pools,
 * in reserved addresses, and in the segments of frameworks.
 *
 * Contract: plain data, in the arena of the run. Figures are bytes and counts of this process's
 * blocks; unknown is CUF_UNKNOWN. An array and its count are one pair; an empty one may be NULL.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/fact_types.h"

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
