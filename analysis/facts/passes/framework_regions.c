/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators that take regions from the driver and report nothing of what is inside: told by the library that asked for
 * the region, and by the pattern of sizes.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/facts/passes/framework_facts.h"
#include "analysis/symbols/symbols.h"

/*
 * Sources: onnxruntime bfc_arena.cc; docs.jax.dev gpu_memory_allocation; cupy.cuda.MemoryPool; rapidsai/rmm pool_memory_resource, which was
 * headers alone up to 25.08: it lay in whoever used it. Seen to be so: tests/frameworks/clients.tap.
 */
static const struct client {
	const char *name, *backend, *modules[6];
} clients[] = {
	{ "ONNX Runtime", "BFC arena", { "libonnxruntime", "onnxruntime_pybind11" } },
	{ "TensorFlow", "BFC arena", { "libtensorflow", "pywrap_tensorflow" } },
	{ "JAX", "BFC arena", { "xla_cuda", "xla_extension", "libjax", "pjrt_c_api_gpu" } },
	{ "CuPy", "memory pool", { "/cupy/", "/cupy_backends/" } },
	{ "RMM",
	  "memory pool",
	  { "librmm", "/rmm/", "libcudf", "libraft", "libcugraph", "libcuml" } },
	{ "PyTorch", "", { "libc10_cuda", "libc10_hip" } },
};
enum { CLIENTS = sizeof clients / sizeof *clients, RMM = CLIENTS - 2, PYTORCH = CLIENTS - 1 };

static unsigned client_of_path(const char *path)
{
	for (unsigned c = 0; c < CLIENTS; c++)
		for (size_t i = 0; i < sizeof clients->modules / sizeof *clients->modules &&
				   clients[c].modules[i];
		     i++)
			if (strstr(path, clients[c].modules[i]))
				return c;
	return CLIENTS;
}

/* A program that has RMM in itself: by the name of the function that asks. */
static unsigned client_of_function(const struct build *build, const struct fact_module *module,
				   uint64_t addr)
{
	const struct symbols_frame *frames;
	size_t count = symbols_resolve(symbols_module(build->options.symbols, module->path,
						      module->build_id, module->build_id_bytes),
				       addr - module->base - 1, &frames);
	for (size_t i = 0; i < count; i++)
		if (frames[i].function && !strncmp(frames[i].function, "rmm::", 5))
			return RMM;
	return CLIENTS;
}

/* The innermost frame outside CUDA's own libraries says who asked; CLIENTS: nobody of the table. */
static unsigned client_of(const struct build *build, uint32_t process,
			  const struct framework_range *range)
{
	const struct fact_process *recorded = &build->facts->processes[process];
	struct fact_stack stack = { .process = process, .id = range->stack };
	stack_fill(build, &stack, range->time_ns);
	for (uint32_t i = 0; i < stack.depth; i++) {
		const struct fact_module *module =
			cuf_frame_is_python(stack.addrs[i])
				? NULL
				: fact_module_at(recorded, stack.addrs[i], stack.time_ns);
		const char *name = module ? strrchr(module->path, '/') : NULL;
		if (!module)
			return CLIENTS;
		if (!strncmp(name ? name + 1 : module->path, "libcuda", 7))
			continue;
		if (build->options.symbols && !strcmp(module->path, recorded->exe) &&
		    client_of_function(build, module, stack.addrs[i]) != CLIENTS)
			return RMM;
		return client_of_path(module->path);
	}
	return CLIENTS;
}

static bool may_be_there(const struct build *build, const struct fact_process *process)
{
	if (build->options.symbols)
		return true;
	for (size_t i = 0; i < process->module_count; i++)
		if (client_of_path(process->modules[i].path) != CLIENTS)
			return true;
	return false;
}

struct tally {
	struct fact_segment *segments;
	size_t count, room;
	uint64_t bytes, largest_bytes;
	bool powers;
};

static void add(struct build *build, uint32_t process, const struct framework_range *range,
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
	tally->largest_bytes = range->bytes > tally->largest_bytes ? range->bytes
								   : tally->largest_bytes;
	tally->bytes += range->bytes;
	tally->count++;
}

/* An arena that doubles its regions, or took most of what it has at once, shows it by their sizes. */
static const char *backend_of(unsigned client, const struct tally *tally)
{
	if (tally->powers && tally->count > 1)
		return "BFC arena, regions doubled";
	if (tally->largest_bytes >= (uint64_t)4 << 30 &&
	    tally->largest_bytes >= tally->bytes / 4 * 3)
		return "preallocated";
	return clients[client].backend;
}

struct framework_regions framework_regions_of(struct build *build, uint32_t process,
					      const struct framework_map *map, bool pytorch_seen)
{
	struct framework_regions out = { 0 };
	struct tally tallies[CLIENTS] = { 0 };
	if (!may_be_there(build, &build->facts->processes[process]))
		return out;
	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *range = &map->ranges[i];
		unsigned client = range->is_segment ? CLIENTS : client_of(build, process, range);
		if (client != CLIENTS && !(client == PYTORCH && pytorch_seen))
			add(build, process, range, &tallies[client]);
	}
	out.items = arena_zeroed(build->arena, CLIENTS, sizeof *out.items);
	for (unsigned c = 0; c < CLIENTS; c++) {
		struct tally *tally = &tallies[c];
		if (tally->count)
			out.items[out.count++] = (struct fact_framework){
				.process = process,
				.name = clients[c].name,
				.version = "",
				.backend = backend_of(c, tally),
				.allocated_bytes = CUF_UNKNOWN,
				.reserved_bytes = tally->bytes,
				.placed_bytes = CUF_UNKNOWN,
				.basis = BASIS_INFERRED,
				.segments = arena_copy(build->arena, tally->segments, tally->count,
						       sizeof *tally->segments),
				.segment_count = tally->count,
				.largest_hole = { CUF_UNKNOWN, "" },
				.emptyable_bytes = CUF_UNKNOWN,
				.empty_bytes = CUF_UNKNOWN
			};
		free(tally->segments);
	}
	return out;
}
