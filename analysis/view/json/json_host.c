/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory of one process as JSON: malloc, the allocators' statistics, what is resident, the
 * verdict.
 */
#include "analysis/view/json/json_parts.h"

/* [low, high] of an estimate. null: the end is unknown. */
static struct json_object *json_interval(uint64_t low, uint64_t high)
{
	struct json_object *interval = json_object_new_array();
	json_object_array_add(interval, json_number(low));
	json_object_array_add(interval, json_number(high));
	return interval;
}

/* The free blocks of the allocator by size, as its statistics report them. */
static struct json_object *json_free_classes(const struct fact_allocator *allocator)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < allocator->free_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_number(row, "from_bytes", allocator->free[i].from_bytes);
		json_add_number(row, "count", allocator->free[i].count);
		json_add_number(row, "bytes", allocator->free[i].bytes);
		json_object_array_add(array, row);
	}
	return array;
}

/* Slabs of one block size. A slab can be released only when none of its blocks is used. */
static struct json_object *json_slabs(const struct fact_allocator *allocator)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < allocator->slab_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_number(row, "block_bytes", allocator->slabs[i].block_bytes);
		json_add_number(row, "used_count", allocator->slabs[i].used_count);
		json_add_number(row, "all_count", allocator->slabs[i].all_count);
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * The allocator's statistics at one time, "books_ns". They split what it got from the kernel
 * into allocated, free between blocks, and free in whole pages.
 */
static void add_statistics(struct json_object *object, const struct fact_allocator *allocator)
{
	json_add_word(object, "version", allocator->version);
	json_add_word(object, "object", allocator->object);
	json_add_text(object, "role", allocator_role_names[allocator->role]);
	json_add_number(object, "books_ns", allocator->time_ns);
	json_add_number(object, "system_bytes", allocator->system_bytes);
	json_add_number(object, "live_bytes", allocator->live_bytes);
	json_add_number(object, "fragmented_bytes", allocator->fragmented_bytes);
	json_add_number(object, "cached_bytes", allocator->cached_bytes);
	json_add_word(object, "split_basis", basis_names[allocator->split_basis]);
	json_add_number(object, "own_bytes", allocator->own_bytes);
	json_add_number(object, "retained_bytes", allocator->retained_bytes);
	json_add_number(object, "thread_cached_bytes", allocator->thread_cached_bytes);
	json_add_number(object, "mapped_bytes", allocator->mapped_bytes);
	json_add_number(object, "top_bytes", allocator->top_bytes);
	json_add_number(object, "arena_count", allocator->arena_count);
	json_add_number(object, "largest_free_bytes", allocator->largest_free.bytes);
	json_add_text(object, "largest_free_basis", json_layer_words(&allocator->largest_free));
	json_add(object, "free", json_free_classes(allocator));
	json_add(object, "slabs", json_slabs(allocator));
}

/* Counted calls are of our hooks, whatever allocator is behind them. */
static struct json_object *json_allocator(const struct fact_host *host)
{
	const struct fact_allocator *allocator = &allocator_unknown;
	struct json_object *object = json_object_new_object();
	const char *name = NULL;
	/* the process's allocator comes first; without statistics there is none */
	if (host->allocator_count && host->allocators[0].role == ALLOCATOR_PROCESS) {
		allocator = host->allocators;
		name = allocator->name;
	}
	json_add_text(object, "name", name);
	json_add_number(object, "alloc_count", host->alloc_count);
	json_add_number(object, "free_count", host->free_count);
	json_add_number(object, "recorded_alloc_count", host->recorded_alloc_count);
	json_add_number(object, "recorded_free_count", host->recorded_free_count);
	json_add_number(object, "alloc_bytes", host->alloc_bytes);
	json_add_word(object, "alloc_bytes_basis", basis_names[host->malloc_basis]);
	add_statistics(object, allocator);
	return object;
}

/*
 * Allocators next to the one behind malloc, such as a second copy in a library. Their blocks
 * are not recorded, so statistics are all that is known of them.
 */
static struct json_object *json_other_allocators(const struct fact_host *host)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < host->allocator_count; i++) {
		struct json_object *row;
		if (host->allocators[i].role == ALLOCATOR_PROCESS)
			continue;
		row = json_object_new_object();
		json_add_word(row, "name", host->allocators[i].name);
		add_statistics(row, &host->allocators[i]);
		json_object_array_add(array, row);
	}
	return array;
}

/* The parts of resident memory. They sum to rss_bytes. */
static struct json_object *json_rows(const struct fact_host *host)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < host->row_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "part", host_part_names[host->rows[i].part]);
		json_add_number(row, "bytes", host->rows[i].bytes);
		json_add_basis(row, host->rows[i].basis);
		json_object_array_add(array, row);
	}
	return array;
}

/* What would release memory. The gain is an upper bound. */
static struct json_object *json_advice(const struct fact_host *host)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < host->advice_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "fix", host_fix_names[host->advice[i].fix]);
		json_add_number(row, "gain_bytes_max", host->advice[i].bytes);
		json_object_array_add(array, row);
	}
	return array;
}

/* Call sites whose few blocks keep many pages resident. */
static struct json_object *json_pins(struct frames *frames, const struct fact_host *host)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < host->pin_count; i++) {
		const struct fact_host_pin *pin = &host->pins[i];
		struct json_object *row = json_object_new_object();
		json_add_number(row, "open_bytes", pin->open_bytes);
		json_add_number(row, "bytes", pin->bytes);
		json_add_number(row, "count", pin->count);
		json_add_basis(row, pin->basis);
		json_add(row, "stack", json_stack(frames, &pin->stack));
		json_object_array_add(array, row);
	}
	return array;
}

/* Memory that the process mapped itself, past malloc. null: maps were not recorded. */
static struct json_object *json_maps(const struct fact_maps *maps)
{
	struct json_object *object = json_object_new_object();
	if (maps->anonymous_count == CUF_UNKNOWN) {
		json_object_put(object);
		return NULL;
	}
	json_add_number(object, "anonymous_bytes", maps->anonymous_bytes);
	json_add_number(object, "anonymous_count", maps->anonymous_count);
	json_add_number(object, "file_bytes", maps->file_bytes);
	json_add_number(object, "file_count", maps->file_count);
	json_add_number(object, "shared_bytes", maps->shared_bytes);
	json_add_number(object, "shared_count", maps->shared_count);
	json_add_number(object, "python_arena_bytes", maps->python_bytes);
	json_add_number(object, "python_arena_count", maps->python_count);
	json_add_number(object, "given_back_bytes", maps->given_back_bytes);
	return object;
}

/* null: no runtime with a heap of its own. */
static struct json_object *json_heap(const struct fact_heap *heap)
{
	struct json_object *object;
	if (!heap->name)
		return NULL;
	object = json_object_new_object();
	json_add_text(object, "runtime", heap->runtime);
	json_add_text(object, "name", heap->name);
	json_add_number(object, "bytes", heap->bytes);
	json_add_number(object, "limit_bytes", heap->limit_bytes);
	return object;
}

struct json_object *json_host(struct frames *frames, const struct fact_host *host)
{
	struct json_object *object = json_object_new_object(), *cgroup = json_object_new_object();
	json_add_number(object, "rss_bytes", host->rss_bytes);
	json_add_number(object, "rss_peak_bytes", host->rss_peak_bytes);
	json_add_number(object, "swap_bytes", host->swap_bytes);
	json_add_number(object, "malloc_live_bytes", host->malloc_live_bytes);
	json_add_number(object, "malloc_live_count", host->malloc_live_count);
	json_add_word(object, "malloc_basis", basis_names[host->malloc_basis]);
	json_add(object, "malloc_interval",
		 json_interval(host->malloc_low_bytes, host->malloc_high_bytes));
	json_add(object, "malloc_count_interval",
		 json_interval(host->malloc_low_count, host->malloc_high_count));
	json_add_number(object, "python_live_bytes", host->python_live_bytes);
	json_add_number(object, "python_live_count", host->python_live_count);
	json_add_number(object, "python_arena_bytes", host->python_arena_bytes);
	json_add_number(object, "live_peak_bytes", host->live_peak_bytes);
	json_add_number(object, "live_peak_ns", host->live_peak_ns);
	json_add_bool(object, "at_peak", host->at_peak);
	json_add_bool(object, "is_near_peak", host->is_near_peak);
	json_add(object, "allocator", json_allocator(host));
	json_add(object, "other_allocators", json_other_allocators(host));
	json_add(object, "resident", json_rows(host));
	json_add_word(object, "verdict", host_verdict_names[host->verdict]);
	json_add(object, "advice", json_advice(host));
	json_add(object, "pins", json_pins(frames, host));
	json_add(object, "maps", json_maps(&host->maps));
	json_add(object, "heap", json_heap(&host->heap));
	json_add_number(object, "nobodys_bytes", host->heap.nobodys_bytes);
	json_add_number(object, "pinned_bytes", host->pinned_bytes);
	json_add_number(object, "mapped_file_bytes", host->mapped_file_bytes);
	json_add_number(cgroup, "current_bytes", host->cgroup_bytes);
	json_add_number(cgroup, "max_bytes", host->cgroup_max_bytes);
	json_add_number(cgroup, "shmem_bytes", host->cgroup_shmem_bytes);
	json_add(object, "cgroup", cgroup);
	json_add_number(object, "memory_total_bytes", host->memory_total_bytes);
	return object;
}
