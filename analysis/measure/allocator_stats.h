/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of a process's allocators, as the recorder stored them while its memory changed, at
 * incidents, and before the end where that takes no locks.
 *
 * Contract: the result is in the arena. time_ns is CLOCK_REALTIME, CUF_UNKNOWN: the end.
 * Statistics read up to STATS_LATE_NS later still count, since the recorder reads them shortly
 * after an incident. failed_ns: a request failed then, and what was read because of it is
 * preferred; CUF_UNKNOWN: none.
 */
#pragma once

#include "analysis/recording/meta.h"

/* One class of sizes of what an allocator has free. */
struct fact_free_class {
	uint64_t from_bytes, count, bytes;
};

/* Slabs of one block size: jemalloc. */
struct fact_slab {
	uint64_t block_bytes, used_count, all_count;
};

enum fact_allocator_role {
	ALLOCATOR_PROCESS,  /* behind our hooks */
	ALLOCATOR_PRIVATE,  /* of one object only; its blocks are not seen */
	ALLOCATOR_IN_FRONT, /* in front of our hooks; its blocks are not seen */
	ALLOCATOR_ROLE_MAX
};
extern const char *const allocator_role_names[ALLOCATOR_ROLE_MAX]; /* process private in_front */

/* An allocator and its statistics; without them all figures are CUF_UNKNOWN. */
struct fact_allocator {
	const char *name, *version;    /* "" unknown */
	const char *object;            /* the file that has it */
	enum fact_allocator_role role;
	uint64_t time_ns;              /* of the statistics; CUF_UNKNOWN: none */
	bool at_incident;              /* they were read after a failed request */
	uint64_t system_bytes;         /* obtained from the kernel */
	uint64_t live_bytes;           /* allocated, with rounding and what thread caches hold */
	uint64_t cached_bytes;         /* free, in whole pages: could be released */
	uint64_t fragmented_bytes;     /* free, in pages that have live blocks */
	enum fact_basis split_basis;   /* of the two above */
	uint64_t own_bytes;            /* its bookkeeping */
	uint64_t retained_bytes;       /* released, addresses kept */
	uint64_t thread_cached_bytes;
	uint64_t mapped_bytes;         /* of live_bytes: blocks with a mapping of their own */
	uint64_t top_bytes;            /* of cached_bytes: the end of the heap */
	uint64_t arena_count;
	struct fact_layer largest_free;
	const struct fact_free_class *free;
	size_t free_count;
	const struct fact_slab *slabs;
	size_t slab_count;
};
extern const struct fact_allocator allocator_unknown; /* no figure is known */

#define STATS_LATE_NS 1000000000ull

/* One for each allocator, that of the process first. *count 0: the recording has none. */
struct fact_allocator *allocator_stats_of(const struct meta *meta, uint64_t time_ns,
					  uint64_t failed_ns, struct arena *arena, size_t *count);
/* Resident memory by sort of mapping, as key=value lines, and when; NULL: none at that time. */
const struct fact_meta_text *allocator_stats_memory(const struct meta *meta, uint64_t time_ns,
						    uint64_t failed_ns);
/* Only its name is left: its statistics are of another moment. */
void allocator_stats_forget(struct fact_allocator *allocator);
