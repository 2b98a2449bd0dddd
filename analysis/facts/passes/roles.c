/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of live blocks, by stack, each stack looked at once. */
#include "analysis/facts/passes/roles.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/measure/framework_segments.h"
#include "analysis/facts/passes/passes.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/symbols/role_names.h"
#include "analysis/symbols/symbols.h"

enum { FRAMES_LOOKED_AT = 128, ROLES_MAX = 64, PHASES_MAX = 16 };

struct span_role {
	uint64_t begin_ns, end_ns;
	const char *role;
};

struct roles {
	const struct facts *facts;
	uint32_t process;
	struct hash_index stacks; /* to a place in known, plus one */
	const char **known;       /* role of a stack; NULL: none */
	size_t known_count, known_room;
	struct span_role phases[PHASES_MAX];
	size_t phase_count; /* those that tell what came then */
	const struct fact_meta_text **codes;
	size_t code_count; /* META CODE by number */
};

/* Python code objects by number. The limit keeps a damaged number from making a huge table. */
static void index_codes(struct roles *roles, const struct fact_process *process)
{
	size_t room = 0;
	for (size_t i = 0; i < process->text_count; i++) {
		uint64_t number = process->texts[i].number;
		if (process->texts[i].type != CUF_META_CODE || number > 1u << 20)
			continue;
		while (roles->code_count <= number) {
			xalloc_grow(&roles->codes, roles->code_count, &room, sizeof *roles->codes);
			roles->codes[roles->code_count++] = NULL;
		}
		roles->codes[number] = &process->texts[i];
	}
}

/* CLOCK_REALTIME. */
static void find_phases(struct roles *roles, const struct fact_process *process)
{
	for (size_t i = 0; i < process->phase_count && roles->phase_count < PHASES_MAX; i++) {
		const char *role = NULL;

		if (process->phases[i].basis == BASIS_INFERRED)
			role = role_of_phase(process->phases[i].name);
		if (role)
			roles->phases[roles->phase_count++] = (struct span_role){
				process->phases[i].begin_ns, process->phases[i].end_ns, role
			};
	}
}

struct block_memory *block_memory_new(size_t processes)
{
	return xalloc_zeroed(processes, sizeof(struct block_memory));
}

void block_memory_free(struct block_memory *by_process, size_t processes)
{
	for (size_t i = 0; i < processes; i++) {
		struct roles *roles = by_process[i].roles;

		framework_marks_free(by_process[i].marks);
		if (!roles)
			continue;
		hash_index_fini(&roles->stacks);
		free(roles->known);
		free(roles->codes);
		free(roles);
	}
	free(by_process);
}

struct roles *roles_of(struct block_memory *by_process, const struct facts *facts, uint32_t process)
{
	struct roles *roles = by_process[process].roles;

	if (roles)
		return roles;
	by_process[process].roles = roles = xalloc_zeroed(1, sizeof *roles);
	roles->facts = facts;
	roles->process = process;
	hash_index_init(&roles->stacks, 0);
	index_codes(roles, &facts->processes[process]);
	find_phases(roles, &facts->processes[process]);
	return roles;
}

/* "qualified name, file, first line", each ended by a newline. */
static const char *role_of_python(const struct roles *roles, uint64_t frame)
{
	uint32_t code = cuf_frame_code(frame);
	const char *name, *name_end, *file, *file_end;

	if (!code || code >= roles->code_count || !roles->codes[code])
		return NULL;
	name = roles->codes[code]->text;
	name_end = strchr(name, '\n');
	if (!name_end)
		return NULL;
	file = name_end + 1;
	file_end = strchr(file, '\n');
	if (!file_end)
		return NULL;
	return role_of_code(name, (size_t)(name_end - name), file, (size_t)(file_end - file));
}

/* The library decides first, then a name that the recorder noted, then symbols: those cost most. */
static const char *role_of_address(struct symbols *symbols, const struct fact_process *process,
				   uint64_t addr, uint64_t time_ns)
{
	const struct fact_module *module = fact_module_at(process, addr, time_ns);
	const char *hint = fact_function_at(process, addr, module), *role = NULL;
	const struct symbols_frame *frames;
	size_t count;
	if (module)
		role = library_role(module->path);
	if (!role && hint)
		role = role_of_function(hint);
	if (role || !module || !symbols || !has_telling_symbols(module->path, process->exe))
		return role;
	count = symbols_resolve(symbols_module(symbols, module->path, module->build_id,
					       module->build_id_bytes),
				addr - module->base - 1, &frames);
	for (size_t i = 0; i < count && !role; i++)
		role = role_of_function(frames[i].function);
	return role;
}

/* The innermost frame with a role decides. */
static const char *look_at_stack(const struct roles *roles, uint32_t stack, uint64_t time_ns)
{
	const struct fact_process *recorded = &roles->facts->processes[roles->process];
	struct fact_stack frames = { .process = roles->process, .id = stack };
	const char *role = NULL;
	stack_fill(roles->facts, &frames, time_ns);
	for (uint32_t i = 0; i < frames.depth && i < FRAMES_LOOKED_AT && !role; i++) {
		if (cuf_frame_is_python(frames.addrs[i]))
			role = role_of_python(roles, frames.addrs[i]);
		else
			role = role_of_address(roles->facts->run->symbols, recorded,
					       frames.addrs[i], frames.time_ns);
	}
	return role;
}

/* Programs have thousands of blocks for each stack, so results are kept. */
static const char *role_of_stack(struct roles *roles, uint32_t stack, uint64_t time_ns)
{
	uint32_t *place;
	if (!stack)
		return NULL;
	place = hash_index_place(&roles->stacks, stack);
	if (!*place) {
		xalloc_grow(&roles->known, roles->known_count, &roles->known_room,
			    sizeof *roles->known);
		roles->known[roles->known_count++] = look_at_stack(roles, stack, time_ns);
		*place = (uint32_t)roles->known_count;
	}
	return roles->known[*place - 1];
}

/* By the phase in which the block was allocated. */
static const char *role_of_time(const struct roles *roles, uint64_t time_ns)
{
	uint64_t at = reader_realtime(roles->facts->run->processes[roles->process].reader, time_ns);
	for (size_t i = 0; i < roles->phase_count; i++)
		if (roles->phases[i].begin_ns <= at && at <= roles->phases[i].end_ns)
			return roles->phases[i].role;
	return NULL;
}

/* Noted of the block, or by its stack; or likely, by when it came. */
struct role role_of_site(struct roles *roles, unsigned role, uint32_t stack, uint64_t first_ns)
{
	const char *name = role_of_enum(role);
	if (!name)
		name = role_of_stack(roles, stack, first_ns);
	if (name)
		return (struct role){ name, BASIS_OBSERVED };
	name = role_of_time(roles, first_ns);
	return (struct role){ name, name ? BASIS_INFERRED : BASIS_NONE };
}

/* One sum for each owner, role and basis. */
static void count(struct usage *held, enum fact_owner owner, struct role role, uint64_t bytes)
{
	size_t i = 0;
	while (i < held->role_count &&
	       (held->roles[i].owner != owner || held->roles[i].role != role.name ||
		held->roles[i].basis != role.basis))
		i++;
	if (i == ROLES_MAX)
		return; /* more rows than roles and kinds make */
	if (i == held->role_count)
		held->roles[held->role_count++] =
			(struct role_sum){ .owner = owner, .role = role.name, .basis = role.basis };
	if (bytes < (uint64_t)1 << CUF_KEY_SHIFT)
		held->roles[i].bytes += bytes;
	held->roles[i].count++;
}

/* The range that contains an address; ranges are sorted. NULL: none. */
static const struct framework_range *range_at(const struct framework_map *map, uint64_t addr)
{
	size_t low = 0, high = map->range_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (map->ranges[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - map->ranges[low - 1].addr >= map->ranges[low - 1].bytes)
		return NULL;
	return &map->ranges[low - 1];
}

/* Ledger keys of what is cut up: segments, and the physical memory behind those that are mapped. */
static void find_segments(const struct liveset *live, unsigned device,
			  const struct framework_map *map, struct liveset *out)
{
	bool any_run = false;
	size_t at = 0;
	liveset_init(out, 0);
	for (size_t i = 0; i < map->range_count; i++) {
		struct cuf_block segment = { .key = cuf_key(CUF_SPACE_DEVICE,
							    map->ranges[i].addr) };
		if (map->ranges[i].is_segment && map->ranges[i].kind != CUF_KIND_MAPPING)
			liveset_put(out, &segment);
		any_run |= map->ranges[i].is_segment && map->ranges[i].kind == CUF_KIND_MAPPING;
	}
	if (!any_run)
		return;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		const struct framework_range *range = NULL;
		struct cuf_block handle = { .key = cuf_key(CUF_SPACE_HANDLE, block->aux) };

		if (block->kind == CUF_KIND_MAPPING && block->device == device)
			range = range_at(map, cuf_key_addr(block->key));
		
		if (range && range->is_segment)
			liveset_put(out, &handle);
	}
}

void roles_sum(struct roles *roles, unsigned device, const struct liveset *live,
	       const struct framework_map *map, struct usage *usage)
{
	struct liveset segments;
	size_t at = 0;
	usage->roles = arena_zeroed(roles->facts->arena, ROLES_MAX, sizeof *usage->roles);
	find_segments(live, device, map, &segments);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		enum fact_owner owner = OWNER_MAX;

		if (block->kind != CUF_KIND_MAPPING)
			owner = owner_of_block(block->kind);
		
		if (owner == OWNER_MAX || block->device != device ||
		    (block->flags & CUF_EVENT_HOST_LOCATION) || liveset_find(&segments, block->key))
			continue;
		count(usage, owner, role_of_site(roles, block->role, block->stack, block->time_ns),
		      block->bytes);
	}
	for (size_t i = 0; i < map->block_count; i++) {
		const struct framework_block *block = &map->blocks[i];
		enum fact_owner owner = OWNER_MAX;

		if (block->range != FACT_NONE)
			owner = owner_of_block(map->ranges[block->range].kind);
		
		if (owner != OWNER_MAX)
			count(usage, owner,
			      role_of_site(roles, block->role, block->stack, block->time_ns),
			      block->bytes);
	}
	liveset_fini(&segments);
}
