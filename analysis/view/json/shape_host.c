/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of one process: malloc, the allocators' statistics, what is resident. */
#include "analysis/view/json/shapes.h"

static const struct words role_words = WORDS(NULL, allocator_role_names),
			  part_words = WORDS(NULL, host_part_names),
			  verdict_words = WORDS(NULL, host_verdict_names),
			  fix_words = WORDS(NULL, host_fix_names);

#define OF struct fact_free_class
static const struct field free_class_fields[] = {
	{ "from_bytes", COUNT(from_bytes) },
	{ "count", COUNT(count) },
	{ "bytes", COUNT(bytes) },
};
static const struct shape free_class_shape = SHAPE(NULL, free_class_fields);
#undef OF

/* A slab can be released only when none of its blocks is used. */
#define OF struct fact_slab
static const struct field slab_fields[] = {
	{ "block_bytes", COUNT(block_bytes) },
	{ "used_count", COUNT(used_count) },
	{ "all_count", COUNT(all_count) },
};
static const struct shape slab_shape = SHAPE(NULL, slab_fields);
#undef OF

/*
 * The allocator's statistics at one time, "books_ns". They split what it got from the kernel
 * into allocated, free between blocks, and free in whole pages. `from` finds the allocator.
 */
#define OF struct fact_allocator
#define STATISTICS(from) \
	{ "version", .base = from, WORD(version) }, \
	{ "object", .base = from, WORD(object) }, \
	{ "role", .base = from, NAME(role, role_words) }, \
	{ "books_ns", .base = from, NUMBER(time_ns) }, \
	{ "system_bytes", .base = from, NUMBER(system_bytes) }, \
	{ "live_bytes", .base = from, NUMBER(live_bytes) }, \
	{ "fragmented_bytes", .base = from, NUMBER(fragmented_bytes) }, \
	{ "cached_bytes", .base = from, NUMBER(cached_bytes) }, \
	{ "split_basis", .base = from, BASIS(split_basis) }, \
	{ "own_bytes", .base = from, NUMBER(own_bytes) }, \
	{ "retained_bytes", .base = from, NUMBER(retained_bytes) }, \
	{ "thread_cached_bytes", .base = from, NUMBER(thread_cached_bytes) }, \
	{ "mapped_bytes", .base = from, NUMBER(mapped_bytes) }, \
	{ "top_bytes", .base = from, NUMBER(top_bytes) }, \
	{ "arena_count", .base = from, NUMBER(arena_count) }, \
	{ "largest_free_bytes", .base = from, NUMBER(largest_free.bytes) }, \
	{ "largest_free_basis", .base = from, LAYER(largest_free) }, \
	{ "free", .base = from, LIST(free, free_count, free_class_shape) }, \
	{ "slabs", .base = from, LIST(slabs, slab_count, slab_shape) }
static const struct field other_allocator_fields[] = {
	{ "name", WORD(name) },
	STATISTICS(NULL),
};
static const struct shape other_allocator_shape = SHAPE(NULL, other_allocator_fields);
#undef OF

/* Their blocks are not recorded, so statistics are all that is known of them. */
static size_t write_other_allocators(struct fields *fields, const struct field *field,
				     const void *object)
{
	const struct fact_host *host = object;

	for (size_t i = 0; i < host->allocator_count; i++)
		if (host->allocators[i].role != ALLOCATOR_PROCESS)
			fields_row(fields, NULL, field->shape, &host->allocators[i]);
	return host->allocator_count;
}

/* The process's allocator comes first; NULL: there are no statistics of it. */
static const void *own_allocator(const struct fields *fields, const void *object)
{
	const struct fact_host *host = object;

	if (host->allocator_count && host->allocators[0].role == ALLOCATOR_PROCESS)
		return host->allocators;
	return NULL;
}

static const void *statistics(const struct fields *fields, const void *object)
{
	const void *allocator = own_allocator(fields, object);

	return allocator ? allocator : &allocator_unknown;
}

/* Counted calls are of our hooks, whatever allocator is behind them. */
#define OF struct fact_host
static const struct field allocator_fields[] = {
	{ "name", .base = own_allocator, .type = FIELD_TEXT, .is_nullable = true,
	  IN(struct fact_allocator, name) },
	{ "alloc_count", NUMBER(alloc_count),
	  .meaning = "calls; null where they were not all seen: host=sampled, host=off" },
	{ "free_count", NUMBER(free_count), .meaning = "as alloc_count" },
	{ "recorded_alloc_count", NUMBER(recorded_alloc_count), .meaning = "of them, recorded; all "
	  "in host=full, the sampled and the big ones else" },
	{ "recorded_free_count", NUMBER(recorded_free_count) },
	{ "alloc_bytes", NUMBER(alloc_bytes) },
	{ "alloc_bytes_basis", BASIS(malloc_basis) },
#undef OF
#define OF struct fact_allocator
	STATISTICS(statistics),
#undef OF
#define OF struct fact_host
};
static const struct shape allocator_shape = SHAPE(NULL, allocator_fields);
#undef OF

#define OF struct fact_host_row
static const struct field resident_fields[] = {
	{ "part", NAME(part, part_words) },
	{ "bytes", COUNT(bytes) },
	{ "basis", BASIS(basis) },
};
static const struct shape resident_shape = SHAPE(NULL, resident_fields);
#undef OF

/* What would release memory. The gain is an upper bound. */
#define OF struct fact_host_advice
static const struct field advice_fields[] = {
	{ "fix", NAME(fix, fix_words) },
	{ "gain_bytes_max", NUMBER(bytes) },
};
static const struct shape advice_shape = SHAPE(NULL, advice_fields);
#undef OF

/* Call sites whose few blocks keep many pages resident. */
#define OF struct fact_host_pin
static const struct field pin_fields[] = {
	{ "open_bytes", COUNT(open_bytes) },
	{ "bytes", COUNT(bytes) },
	{ "count", COUNT(count) },
	{ "basis", BASIS(basis) },
	{ "stack", STACK(stack) },
};
static const struct shape pin_shape = SHAPE(NULL, pin_fields);
#undef OF

/* Memory that the process mapped itself, past malloc. NULL: maps were not recorded. */
static const void *recorded_maps(const struct fields *fields, const void *object)
{
	const struct fact_host *host = object;

	return host->maps.anonymous_count == CUF_UNKNOWN ? NULL : &host->maps;
}

#define OF struct fact_maps
static const struct field maps_fields[] = {
	{ "anonymous_bytes", NUMBER(anonymous_bytes) },
	{ "anonymous_count", NUMBER(anonymous_count) },
	{ "file_bytes", NUMBER(file_bytes) },
	{ "file_count", NUMBER(file_count) },
	{ "shared_bytes", NUMBER(shared_bytes) },
	{ "shared_count", NUMBER(shared_count) },
	{ "python_arena_bytes", NUMBER(python_bytes) },
	{ "python_arena_count", NUMBER(python_count) },
	{ "given_back_bytes", NUMBER(given_back_bytes) },
};
static const struct shape maps_shape = SHAPE(NULL, maps_fields);
#undef OF

/* NULL: no runtime with a heap of its own. */
static const void *runtime_heap(const struct fields *fields, const void *object)
{
	const struct fact_host *host = object;

	return host->heap.name ? &host->heap : NULL;
}

#define OF struct fact_heap
static const struct field heap_fields[] = {
	{ "runtime", TEXT(runtime) },
	{ "name", TEXT(name) },
	{ "bytes", COUNT(bytes), .meaning = "resident in its maps, an estimate; 0: none was "
	  "recorded" },
	{ "limit_bytes", NUMBER(limit_bytes),
	  .meaning = "as the command line or a recorded variable sets it" },
};
static const struct shape heap_shape = SHAPE(NULL, heap_fields);
#undef OF

#define OF struct fact_host
static const struct field cgroup_fields[] = {
	{ "current_bytes", NUMBER(cgroup_bytes) },
	{ "max_bytes", NUMBER(cgroup_max_bytes) },
	{ "shmem_bytes", NUMBER(cgroup_shmem_bytes), LATER },
};
static const struct shape cgroup_shape = SHAPE(NULL, cgroup_fields);

static const struct field host_fields[] = {
	{ "rss_bytes", NUMBER(rss_bytes) },
	{ "rss_peak_bytes", NUMBER(rss_peak_bytes) },
	{ "swap_bytes", NUMBER(swap_bytes) },
	{ "malloc_live_bytes", NUMBER(malloc_live_bytes) },
	{ "malloc_live_count", NUMBER(malloc_live_count) },
	{ "malloc_basis", BASIS(malloc_basis) },
	{ "malloc_interval", INTERVAL(NUMBERS, true, malloc_low_bytes, malloc_high_bytes) },
	{ "malloc_count_interval", INTERVAL(NUMBERS, true, malloc_low_count, malloc_high_count) },
	{ "python_live_bytes", NUMBER(python_live_bytes) },
	{ "python_live_count", NUMBER(python_live_count) },
	{ "python_arena_bytes", NUMBER(python_arena_bytes) },
	{ "live_peak_bytes", NUMBER(live_peak_bytes), .meaning = "the most that was live of "
	  "malloc, maps and Python objects until the moment; malloc_basis" },
	{ "live_peak_ns", NUMBER(live_peak_ns) },
	{ "at_peak", FLAG(at_peak), .meaning = "host figures and host call sites are of that "
	  "moment, as --at=peak asks" },
	{ "is_near_peak", FLAG(is_near_peak), LATER, "at_peak: the events of that time were "
	  "overwritten; what is live is the recorder's note of it, at most some 5 % below "
	  "live_peak_bytes" },
	{ "allocator", PART(allocator_shape) },
	{ "other_allocators", ROWS(other_allocator_shape, write_other_allocators) },
	{ "resident", LIST(rows, row_count, resident_shape) },
	{ "verdict", NAME(verdict, verdict_words) },
	{ "advice", LIST(advice, advice_count, advice_shape) },
	{ "pins", LIST(pins, pin_count, pin_shape) },
	{ "maps", FOUND(maps_shape, recorded_maps) },
	{ "heap", FOUND(heap_shape, runtime_heap), LATER, "the heap of a runtime that collects its "
	  "own garbage; null: none is in the process" },
	{ "nobodys_bytes", NUMBER(heap.nobodys_bytes), LATER,
	  "resident, of no file and no recorded call" },
	{ "pinned_bytes", NUMBER(pinned_bytes) },
	{ "mapped_file_bytes", NUMBER(mapped_file_bytes) },
	{ "cgroup", PART(cgroup_shape) },
	{ "memory_total_bytes", NUMBER(memory_total_bytes) },
};
const struct shape host_shape = SHAPE("host", host_fields);
#undef OF
