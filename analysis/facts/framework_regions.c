/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators that take regions from the driver and report nothing of what is inside: told by the library that asked for
 * the region, and by the pattern of sizes.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/facts/framework_facts.h"
#include "analysis/symbols/symbols.h"

/*
 * Sources: onnxruntime bfc_arena.cc; docs.jax.dev gpu_memory_allocation; cupy.cuda.MemoryPool; rapidsai/rmm pool_memory_resource, which was
 * headers alone up to 25.08: it lay in whoever used it. Seen to be so: tests/frameworks/clients.tap.
 */
static const struct client { const char *name, *backend, *modules[6]; } clients[] = {
	{ "ONNX Runtime", "BFC arena", { "libonnxruntime", "onnxruntime_pybind11" } },
	{ "TensorFlow", "BFC arena", { "libtensorflow", "pywrap_tensorflow" } },
	{ "JAX", "BFC arena", { "xla_cuda", "xla_extension", "libjax", "pjrt_c_api_gpu" } },
	{ "CuPy", "memory pool", { "/cupy/", "/cupy_backends/" } },
	{ "RMM", "memory pool", { "librmm", "/rmm/", "libcudf", "libraft", "libcugraph", "libcuml" } },
	{ "PyTorch", "", { "libc10_cuda", "libc10_hip" } },
};
enum { CLIENTS = sizeof clients / sizeof *clients, RMM = CLIENTS - 2, PYTORCH = CLIENTS - 1 };

static unsigned client_of_path(const char *path)
{
	for (unsigned c = 0; c < CLIENTS; c++)
		for (size_t i = 0; i < sizeof clients->modules / sizeof *clients->modules && clients[c].modules[i]; i++)
			if (strstr(path, clients[c].modules[i]))
				return c;
	return CLIENTS;
}

/* A program that has RMM in itself: by the name of the function that asks. */
static unsigned client_of_function(const struct build *b, const struct fact_module *m, uint64_t addr)
{
	const struct symbols_frame *frames;
	size_t count = symbols_resolve(symbols_module(b->options.symbols, m->path, m->build_id, m->build_id_bytes), addr - m->base - 1, &frames);
	for (size_t i = 0; i < count; i++)
		if (frames[i].function && !strncmp(frames[i].function, "rmm::", 5))
			return RMM;
	return CLIENTS;
}

/* The innermost frame outside CUDA's own libraries says who asked; CLIENTS: nobody of the table. */
static unsigned client_of(const struct build *b, uint32_t process, const struct framework_range *r)
{
	const struct fact_process *p = &b->facts->processes[process];
	struct fact_stack s = { .process = process, .id = r->stack };
	stack_fill(b, &s, r->time_ns);
	for (uint32_t i = 0; i < s.depth; i++) {
		const struct fact_module *m = cuf_frame_is_python(s.addrs[i]) ? NULL : fact_module_at(p, s.addrs[i], s.time_ns);
		const char *name = m ? strrchr(m->path, '/') : NULL;
		if (!m)
			return CLIENTS;
		if (!strncmp(name ? name + 1 : m->path, "libcuda", 7))
			continue;
		if (b->options.symbols && !strcmp(m->path, p->exe) && client_of_function(b, m, s.addrs[i]) != CLIENTS)
			return RMM;
		return client_of_path(m->path);
	}
	return CLIENTS;
}

static bool may_be_there(const struct build *b, const struct fact_process *p)
{
	if (b->options.symbols)
		return true;
	for (size_t i = 0; i < p->module_count; i++)
		if (client_of_path(p->modules[i].path) != CLIENTS)
			return true;
	return false;
}

struct tally { struct fact_segment *segments; size_t count, room; uint64_t bytes, largest_bytes; bool powers; };

static void add(struct build *b, uint32_t process, const struct framework_range *r, struct tally *t)
{
	xalloc_grow(&t->segments, t->count, &t->room, sizeof *t->segments);
	t->segments[t->count] = (struct fact_segment){ .process = process, .addr = r->addr, .bytes = r->bytes, .live_bytes = CUF_UNKNOWN,
		.live_count = CUF_UNKNOWN, .largest_hole_bytes = CUF_UNKNOWN, .hole_count = CUF_UNKNOWN, .serves_least_bytes = CUF_UNKNOWN,
		.serves_most_bytes = CUF_UNKNOWN, .expandable = r->grows, .born_ns = r->time_ns, .stack = { .process = process, .id = r->stack } };
	t->powers = (!t->count || t->powers) && !(r->bytes & (r->bytes - 1)) && r->bytes >= 1u << 20;
	t->largest_bytes = r->bytes > t->largest_bytes ? r->bytes : t->largest_bytes;
	t->bytes += r->bytes;
	t->count++;
}

/* An arena that doubles its regions, or took most of what it has at once, shows it by their sizes. */
static const char *backend_of(unsigned client, const struct tally *t)
{
	if (t->powers && t->count > 1)
		return "BFC arena, regions doubled";
	if (t->largest_bytes >= (uint64_t)4 << 30 && t->largest_bytes >= t->bytes / 4 * 3)
		return "preallocated";
	return clients[client].backend;
}

struct framework_regions framework_regions_of(struct build *build, uint32_t process, const struct framework_map *map, bool pytorch_seen)
{
	struct framework_regions out = { 0 };
	struct tally tallies[CLIENTS] = { 0 };
	if (!may_be_there(build, &build->facts->processes[process]))
		return out;
	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *r = &map->ranges[i];
		unsigned client = r->is_segment ? CLIENTS : client_of(build, process, r);
		if (client != CLIENTS && !(client == PYTORCH && pytorch_seen))
			add(build, process, r, &tallies[client]);
	}
	out.items = arena_zeroed(build->arena, CLIENTS, sizeof *out.items);
	for (unsigned c = 0; c < CLIENTS; c++) {
		struct tally *t = &tallies[c];
		if (t->count)
			out.items[out.count++] = (struct fact_framework){ .process = process, .name = clients[c].name, .version = "",
				.backend = backend_of(c, t), .allocated_bytes = CUF_UNKNOWN, .reserved_bytes = t->bytes, .placed_bytes = CUF_UNKNOWN,
				.basis = BASIS_INFERRED, .segments = arena_copy(build->arena, t->segments, t->count, sizeof *t->segments),
				.segment_count = t->count, .largest_hole = { CUF_UNKNOWN, "" }, .emptyable_bytes = CUF_UNKNOWN, .empty_bytes = CUF_UNKNOWN };
		free(t->segments);
	}
	return out;
}
