/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators that take regions from the driver and report nothing of what is inside. They are
 * recognised by the library that allocated the region, and by the pattern of sizes.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/facts/passes/framework_facts.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/base/numbers.h"
#include "analysis/symbols/symbols.h"

/* More than the table has. */
enum { FRAMEWORKS_MAX = 32 };

static const struct framework *keeper_by_path(const char *path)
{
	const struct framework *framework;

	for (size_t i = 0; (framework = framework_at(i)); i++)
		if (framework->region_backend && framework_keeps(framework, path))
			return framework;
	return NULL;
}

/* A program that has a framework linked in: by the name of the function that allocates. */
static const struct framework *keeper_by_function(const struct facts *facts,
						  const struct fact_module *module, uint64_t addr)
{
	struct symbols_module *file = symbols_module(facts->run->symbols, module->path,
						     module->build_id, module->build_id_bytes);
	const struct symbols_frame *frames;
	size_t count = symbols_resolve(file, addr - module->base - 1, &frames);
	const struct framework *framework;

	for (size_t i = 0; (framework = framework_at(i)); i++)
		for (size_t f = 0; framework->function_prefix && f < count; f++)
			if (frames[f].function &&
			    !strncmp(frames[f].function, framework->function_prefix,
				     strlen(framework->function_prefix)))
				return framework;
	return NULL;
}

/* The innermost frame outside CUDA's own libraries shows who allocated. NULL: none of the table. */
static const struct framework *keeper_of(const struct facts *facts, uint32_t process,
					 const struct framework_range *range)
{
	const struct fact_process *recorded = &facts->processes[process];
	struct fact_stack stack = { .process = process, .id = range->stack };

	stack_fill(facts, &stack, range->time_ns);
	for (uint32_t i = 0; i < stack.depth; i++) {
		const struct fact_module *module = NULL;
		const struct framework *linked = NULL;

		if (!cuf_frame_is_python(stack.addrs[i]))
			module = fact_module_at(recorded, stack.addrs[i], stack.time_ns);
		if (!module)
			return NULL;
		if (is_cuda_library(module->path))
			continue;
		if (facts->run->symbols && !strcmp(module->path, recorded->exe))
			linked = keeper_by_function(facts, module, stack.addrs[i]);
		if (linked)
			return linked;
		return keeper_by_path(module->path);
	}
	return NULL;
}

/* Saves looking at stacks in programs without any of them. */
static bool may_be_there(const struct facts *facts, const struct fact_process *process)
{
	if (facts->run->symbols)
		return true;
	for (size_t i = 0; i < process->module_count; i++)
		if (keeper_by_path(process->modules[i].path))
			return true;
	return false;
}

struct tally {
	struct fact_segment *segments;
	size_t count, room;
	uint64_t bytes, largest_bytes;
	bool powers;
};

/* `powers` stays true while all regions are powers of two from 1 MiB on, as a BFC arena makes
 * them. */
static void add(const struct facts *facts, uint32_t process, const struct framework_range *range,
		struct tally *tally)
{
	xalloc_grow(&tally->segments, tally->count, &tally->room, sizeof *tally->segments);
	tally->segments[tally->count] =
		(struct fact_segment){ .process = process,
				       .addr = range->addr,
				       .bytes = range->bytes,
				       .live_bytes = CUF_UNKNOWN,
				       .live_count = CUF_UNKNOWN,
				       .largest_hole_bytes = CUF_UNKNOWN,
				       .hole_count = CUF_UNKNOWN,
				       .serves_least_bytes = CUF_UNKNOWN,
				       .serves_most_bytes = CUF_UNKNOWN,
				       .expandable = range->grows,
				       .born_ns = range->time_ns,
				       .stack = { .process = process, .id = range->stack } };
	tally->powers = (!tally->count || tally->powers) && !(range->bytes & (range->bytes - 1)) &&
			range->bytes >= 1u << 20;
	tally->largest_bytes = most_of(range->bytes, tally->largest_bytes);
	tally->bytes += range->bytes;
	tally->count++;
}

/* An arena that doubles its regions, or allocated most of its memory at once, shows by their sizes.
 */
static const char *backend_of(const struct framework *framework, const struct tally *tally)
{
	if (tally->powers && tally->count > 1)
		return "BFC arena, regions doubled";
	if (tally->largest_bytes >= (uint64_t)4 << 30 &&
	    tally->largest_bytes >= tally->bytes / 4 * 3)
		return "preallocated";
	return framework->region_backend;
}

/* Everything inside the regions is unknown, which is not the same as 0. */
static struct fact_framework row_of(const struct facts *facts, uint32_t process,
				    const struct framework *framework, const struct tally *tally)
{
	return (struct fact_framework){
		.process = process,
		.name = framework->name,
		.version = "",
		.backend = backend_of(framework, tally),
		.allocated_bytes = CUF_UNKNOWN,
		.reserved_bytes = tally->bytes,
		.placed_bytes = CUF_UNKNOWN,
		.basis = BASIS_INFERRED,
		.segments = arena_copy(facts->arena, tally->segments, tally->count,
				       sizeof *tally->segments),
		.segment_count = tally->count,
		.largest_hole = { CUF_UNKNOWN, "" },
		.emptyable_bytes = CUF_UNKNOWN,
		.empty_bytes = CUF_UNKNOWN,
	};
}

struct framework_regions framework_regions_of(const struct facts *facts, uint32_t process,
					      const struct framework_map *map, bool pytorch_seen)
{
	struct framework_regions out = { 0 };
	struct tally tallies[FRAMEWORKS_MAX] = { 0 };
	const struct framework *framework;

	if (!may_be_there(facts, &facts->processes[process]))
		return out;
	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *range = &map->ranges[i];
		if (range->is_segment)
			continue;
		framework = keeper_of(facts, process, range);
		if (framework && !(pytorch_seen && !strcmp(framework->name, "PyTorch")))
			add(facts, process, range, &tallies[framework - framework_at(0)]);
	}
	out.items = arena_zeroed(facts->arena, FRAMEWORKS_MAX, sizeof *out.items);
	for (size_t i = 0; (framework = framework_at(i)) && i < FRAMEWORKS_MAX; i++) {
		if (tallies[i].count)
			out.items[out.count++] = row_of(facts, process, framework, &tallies[i]);
		free(tallies[i].segments);
	}
	return out;
}
