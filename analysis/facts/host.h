/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of one process: what is live, what resident memory consists of, what its allocator
 * keeps and what would release it. Contract: as in facts.h.
 */
#pragma once

#include "analysis/measure/allocator_stats.h"

/* What resident memory consists of. */
enum fact_host_part {
	PART_LIVE,
	PART_FRAGMENTED,
	PART_CACHED,
	PART_ALLOCATOR,
	PART_OBJECTS,
	PART_PYTHON,
	PART_MAPS,
	PART_OTHER,
	PART_STACK,
	PART_FILES,
	PART_FILES_PRIVATE,
	PART_SHARED,
	PART_RECORDER,
	PART_MAX
};
extern const char *const host_part_names[PART_MAX]; /* malloc_live fragmented cached ... */

struct fact_host_row {
	enum fact_host_part part;
	uint64_t bytes;
	enum fact_basis basis;
};

/* A call site whose blocks keep pages of the allocator from being released. */
struct fact_host_pin {
	struct fact_stack stack;
	uint64_t open_bytes, bytes, count;
	enum fact_basis basis;
};

enum fact_host_verdict { HOST_UNKNOWN, HOST_FINE, HOST_FRAGMENTED, HOST_CACHED, HOST_VERDICT_MAX };
extern const char *const host_verdict_names[HOST_VERDICT_MAX]; /* "" fine fragmented cached */

enum fact_host_fix { FIX_TRIM, FIX_ARENAS, FIX_SEPARATE, FIX_JEMALLOC, FIX_DECAY, FIX_MAX };
extern const char *const host_fix_names[FIX_MAX]; /* malloc_trim MALLOC_ARENA_MAX separate ... */

struct fact_host_advice {
	enum fact_host_fix fix;
	uint64_t bytes; /* at most released; CUF_UNKNOWN */
};

/* Mappings of the program, as far as they are recorded; all CUF_UNKNOWN where none are. */
struct fact_maps {
	uint64_t anonymous_bytes, anonymous_count;
	uint64_t file_bytes, file_count;     /* with mmap=1 only */
	uint64_t shared_bytes, shared_count; /* shared memory that this process was first to map */
	/* of the anonymous ones, by size and caller; where objects are recorded, arenas are not */
	uint64_t python_bytes, python_count;
	uint64_t given_back_bytes; /* by madvise, in total */
};

/* The heap of a runtime that collects its own garbage, and memory that no recorded call made. */
struct fact_heap {
	const char *runtime, *name; /* "Node.js", "V8 heap"; NULL: the process has none */
	uint64_t bytes;             /* resident in its maps, an estimate; 0: none was recorded */
	double touched;             /* of what the runtime mapped, the share that is resident */
	uint64_t limit_bytes;       /* as its settings state; CUF_UNKNOWN */
	uint64_t nobodys_bytes;     /* resident, of no recorded call and no file; CUF_UNKNOWN */
};

struct fact_host {
	uint64_t rss_bytes; /* last sample at or before the moment */
	uint64_t rss_peak_bytes;
	bool at_peak; /* of what is live, which --at=peak asks for; rss_bytes then is of it */
	/* at_peak: what is live is the recorder's note of it, at most some 5 % below the peak */
	bool is_near_peak;
	uint64_t at_ns; /* the moment of these figures; CUF_UNKNOWN: the end */
	uint64_t malloc_live_bytes; /* exact in full mode, estimated in sampled mode */
	uint64_t malloc_live_count;
	enum fact_basis malloc_basis;
	uint64_t malloc_low_bytes; /* 95 % interval; empty in full mode */
	uint64_t malloc_high_bytes;
	uint64_t malloc_low_count; /* CUF_UNKNOWN: nothing was sampled, blocks may have any size */
	uint64_t malloc_high_count;
	uint64_t python_live_bytes; /* objects in CPython's own allocator; CUF_UNKNOWN: not */
	uint64_t python_live_count; /* recorded */
	uint64_t python_arena_bytes; /* maps that it holds; CUF_UNKNOWN */
	/* the most that was live of malloc, maps and Python's objects until the moment, and when;
	 * CUF_UNKNOWN */
	uint64_t live_peak_bytes, live_peak_ns;
	uint64_t pinned_bytes; /* live pinned and registered memory */
	uint64_t mapped_file_bytes; /* CUF_UNKNOWN: not recorded */
	uint64_t cgroup_bytes; /* memory.current */
	uint64_t cgroup_shmem_bytes; /* of it: shared memory; known near the limit */
	uint64_t cgroup_max_bytes; /* memory.max; CUF_UNKNOWN: no cgroup or no limit */
	uint64_t memory_total_bytes; /* of the machine */
	const char *allocator; /* "glibc 2.36"; NULL unknown */
	const struct fact_allocator *allocators; /* the one behind our hooks first, if known */
	size_t allocator_count;
	const struct fact_host_row *rows; /* sum to rss_bytes; none: not recorded */
	size_t row_count;
	uint64_t swap_bytes; /* CUF_UNKNOWN */
	enum fact_host_verdict verdict;
	const struct fact_host_advice *advice;
	size_t advice_count;
	const struct fact_host_pin *pins; /* by open_bytes, descending; where fragmented */
	size_t pin_count;
	struct fact_maps maps;
	struct fact_heap heap;
	uint64_t alloc_count; /* calls; CUF_UNKNOWN where not all were seen (sampled, off) */
	uint64_t free_count;
	uint64_t recorded_alloc_count; /* calls that were recorded */
	uint64_t recorded_free_count;
	uint64_t thread_count; /* most at one time of threads with a recorded call */
	uint64_t alloc_bytes; /* of all calls, with malloc_basis; CUF_UNKNOWN: off */
};
