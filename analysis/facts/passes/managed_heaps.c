/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a runtime allocated by itself: its collected heap, and other memory; and what other
 * processes may see. Which runtime's it is follows from the modules and functions of the stack.
 * What grows in a heap is not seen from outside, so a heap is never called a leak.
 */
#include "analysis/facts/passes/passes.h"

#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/symbols/runtimes.h"
#include "analysis/measure/pins.h"
#include "analysis/symbols/library_names.h"
#include "analysis/symbols/symbols.h"

static void look_at_address(const struct facts *facts, const struct fact_process *process,
			    uint64_t addr, uint64_t time_ns, struct runtime_look *look)
{
	const struct fact_module *module = fact_module_at(process, addr, time_ns);
	const char *hint = fact_function_at(process, addr, module);
	const struct symbols_frame *frames;
	struct symbols_module *file;
	size_t count;

	if (!module)
		return;
	if (!facts->run->symbols) {
		runtime_look_at(look, hint, module->path,
				is_library_code(hint, module->path, NULL));
		return;
	}
	file = symbols_module(facts->run->symbols, module->path, module->build_id,
			      module->build_id_bytes);
	if (hint) /* the answer is kept for the report, which has no file of a closed plugin */
		symbols_hint(file, addr - module->base - 1, hint, strlen(hint));
	count = symbols_resolve(file, addr - module->base - 1, &frames);
	for (size_t i = 0; i < count; i++)
		runtime_look_at(look, frames[i].function, module->path,
				is_library_code(frames[i].function, module->path, frames[i].file));
}

void managed_owner(const struct facts *facts, struct fact_site *site)
{
	const struct fact_process *process = &facts->processes[site->process];
	const struct fact_stack *stack = &site->stack;
	struct runtime_look look = { 0 };

	for (uint32_t i = 0; i < stack->depth && !look.is_own; i++)
		if (cuf_frame_is_python(stack->addrs[i]))
			look.is_own = true;
		else
			look_at_address(facts, process, stack->addrs[i], stack->time_ns, &look);
	site->owner = runtime_owner(&look, &site->is_managed);
	if (site->owner) {
		site->runtime = look.runtime->name;
		site->is_mapped = look.is_map || site->is_managed;
	}
	if (!site->is_managed)
		return;
	if (site->class <= CLASS_GROWING)
		site->class = CLASS_LIVE;
	site->is_doubling = false;
}

/* By its modules; a runtime that is linked into the program shows in its stacks. */
static const struct runtime *runtime_in(const struct facts *facts, uint32_t index)
{
	const struct fact_process *process = &facts->processes[index];
	const struct runtime *runtime = NULL;

	for (size_t i = 0; i < process->module_count && !runtime; i++)
		runtime = runtime_of_module(process->modules[i].path);
	for (size_t i = 0; i < facts->leak_count && !runtime; i++)
		if (facts->leaks[i].process == index && facts->leaks[i].runtime)
			runtime = runtime_named(facts->leaks[i].runtime);
	return runtime;
}

/* The last that is set counts: variables first, then the command line. */
static uint64_t limit_of(const struct fact_process *process, const struct runtime *runtime)
{
	uint64_t limit = runtime_limit(runtime, process->cmdline);

	for (size_t i = 0; i < process->text_count && !limit; i++)
		if (process->texts[i].type == CUF_META_ENV)
			limit = runtime_limit(runtime, process->texts[i].text);
	return limit ? limit : CUF_UNKNOWN;
}

/* Resident memory that calls of malloc, of Python and of mmap can have made; CUF_UNKNOWN. */
static uint64_t resident_of_calls(const struct fact_process *process, const struct fact_host *host)
{
	uint64_t arenas = known_or_zero(host->python_arena_bytes), files, sum = 0;

	for (size_t i = 0; i < host->row_count; i++)
		if (host->rows[i].part == PART_LIVE || host->rows[i].part == PART_OBJECTS ||
		    host->rows[i].part == PART_MAPS || host->rows[i].part == PART_OTHER)
			sum += host->rows[i].bytes;
	if (host->row_count)
		return sum;
	if (!process->timeline_count || !is_known(host->rss_bytes))
		return CUF_UNKNOWN;
	files = process->timeline[process->timeline_count - 1].rss_shared_bytes;
	if (!is_known(files))
		return CUF_UNKNOWN;
	if (is_known(host->python_live_bytes)) /* arenas are free memory, too */
		files += subtract_to_zero(arenas, host->python_live_bytes);
	return subtract_to_zero(host->rss_bytes, files);
}

/* A runtime has maps that it did not touch yet, so they give way to all other blocks. */
static double touched_share(uint64_t mapped, uint64_t others, uint64_t room)
{
	if (room == CUF_UNKNOWN || mapped + others <= room)
		return 1;
	if (others < room)
		return (double)(room - others) / (double)mapped;
	return (double)room / (double)(mapped + others);
}

struct fact_heap managed_heap(const struct facts *facts, uint32_t index,
			      const struct fact_host *host)
{
	const struct fact_process *process = &facts->processes[index];
	const struct runtime *runtime = runtime_in(facts, index);
	struct fact_heap heap = { .limit_bytes = CUF_UNKNOWN, .nobodys_bytes = CUF_UNKNOWN };
	uint64_t room = resident_of_calls(process, host), mapped = 0, pinned = 0;
	uint64_t live = known_or_zero(host->malloc_live_bytes) +
			known_or_zero(host->python_live_bytes) +
			known_or_zero(host->maps.anonymous_bytes) +
			known_or_zero(host->maps.shared_bytes);

	for (size_t i = 0; i < facts->leak_count; i++)
		if (facts->leaks[i].process == index &&
		    facts->leaks[i].kind == CUF_KIND_PINNED)
			pinned += facts->leaks[i].bytes;
	if (is_known(room) && is_known(host->malloc_live_bytes))
		heap.nobodys_bytes = subtract_to_zero(room, live + pinned);
	if (!runtime)
		return heap;
	heap.runtime = runtime->name;
	heap.name = runtime->heap;
	heap.limit_bytes = limit_of(process, runtime);
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (site->process == index && site->is_mapped)
			mapped += site->bytes;
		if (site->process == index && site->is_managed)
			heap.bytes += site->bytes;
	}
	heap.touched = touched_share(mapped, subtract_to_zero(live, mapped), room);
	heap.bytes = (uint64_t)((double)heap.bytes * heap.touched);
	return heap;
}

/* ---- maps of the program ---- */

#define ARENA_BYTES_OLD (256ull << 10) /* CPython's arenas to 3.9, */
#define ARENA_BYTES (1ull << 20) /* and from 3.10 on */

struct map_sums {
	const struct facts *facts;
	uint32_t process;
	struct fact_maps *maps;
};

/* It has the size of an arena, and its innermost frame is in the interpreter. */
static bool is_python_arena(const struct map_sums *sums, const struct host_map *map)
{
	const struct fact_process *process = &sums->facts->processes[sums->process];
	const struct reader *reader = sums->facts->run->processes[sums->process].reader;
	const struct fact_module *module;
	uint32_t depth;
	uint8_t stop;
	const uint64_t *addrs = reader_stack(reader, map->stack, &depth, &stop);
	if (map->file || map->shared || !depth)
		return false;
	if (map->bytes != ARENA_BYTES && map->bytes != ARENA_BYTES_OLD)
		return false;
	module = fact_module_at(process, addrs[0], CUF_UNKNOWN);
	return module && is_python_interpreter(module->path);
}

/* The maps of the ledger and the events after the moment are added up, so sums may wrap below 0 on
 * the way. */
static void add_map(void *context, const struct host_map *map, int sign)
{
	struct map_sums *sums = context;
	struct fact_maps *maps = sums->maps;
	uint64_t bytes = map->bytes, one = 1;

	if (sign <= 0) {
		bytes = -bytes;
		one = -one;
	}
	if (map->file) {
		maps->file_bytes += bytes;
		maps->file_count += one;
	} else if (map->shared) {
		maps->shared_bytes += bytes;
		maps->shared_count += one;
	} else {
		maps->anonymous_bytes += bytes;
		maps->anonymous_count += one;
	}
	if (is_python_arena(sums, map)) {
		maps->python_bytes += bytes;
		maps->python_count += one;
	}
}

void host_map_after(const struct facts *facts, uint32_t process, const struct host_event *event,
		    struct fact_maps *maps)
{
	struct map_sums sums = { facts, process, maps };
	struct host_map map;

	if (host_map_of(event, &map))
		add_map(&sums, &map, -host_event_sign(event->op));
}

struct fact_maps host_maps_at(const struct facts *facts, uint32_t process,
			      const struct fact_maps *after)
{
	struct fact_maps maps = *after;
	struct map_sums sums = { facts, process, &maps };

	host_maps_end(facts->run->processes[process].reader, add_map, &sums);
	return maps;
}

/* ---- shared memory ---- */

struct shared_sums {
	const struct facts *facts;
	uint32_t process;
	struct fact_site *site;  /* of the map before; NULL: not in the table */
	uint32_t stack;
};

static struct fact_site *leak_at(const struct shared_sums *sums, uint32_t stack)
{
	const struct facts *facts = sums->facts;
	uint32_t id = reader_call_site(sums->facts->run->processes[sums->process].reader, stack);

	for (size_t i = 0; i < facts->leak_count; i++)
		if (facts->leaks[i].process == sums->process && facts->leaks[i].stack.id == id &&
		    facts->leaks[i].kind == CUF_KIND_HOST)
			return &facts->leaks[i];
	return NULL;
}

/* Maps of the ledger are corrected by events, so a sum may wrap below 0 on the way. */
static void add_shared(void *context, const struct host_map *map, int sign)
{
	struct shared_sums *sums = context;

	if (!map->shared)
		return;
	if (map->stack != sums->stack)
		sums->site = leak_at(sums, map->stack);
	sums->stack = map->stack;
	if (sums->site)
		sums->site->shared_bytes += sign > 0 ? map->bytes : -map->bytes;
}

void shared_memory(const struct facts *facts, uint32_t process, uint64_t time_ns)
{
	struct shared_sums sums = { .facts = facts, .process = process, .stack = UINT32_MAX };

	/* most programs have none, and reading them is one more walk over the last events */
	if (!known_or_zero(facts->processes[process].host.maps.shared_count))
		return;
	host_maps_each(facts->run->processes[process].reader, time_ns, add_shared, &sums);
}
