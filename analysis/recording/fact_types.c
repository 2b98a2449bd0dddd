/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the tables of modules and functions. */
#include "analysis/recording/fact_types.h"

#include <string.h>
#include "interpose/abi/format.h"

/* The module at an address at a time. Addresses are reused after an unload, so the time decides. */
const struct fact_module *module_at(const struct fact_module *modules, size_t count, uint64_t addr,
				    uint64_t time_ns)
{
	const struct fact_module *fallback = NULL;

	for (size_t i = count; i--;) {
		const struct fact_module *module = &modules[i];
		if (addr < module->start || addr >= module->end)
			continue;
		if (time_ns == CUF_UNKNOWN)
			return module;
		if (module->loaded_ns <= time_ns && time_ns < module->unloaded_ns)
			return module;
		/* The recorder notes a module at its first look-up, which may follow the stack. */
		if (!fallback ||
		    (module->loaded_ns > time_ns && module->loaded_ns < fallback->loaded_ns))
			fallback = module;
	}
	return fallback;
}

/* Another load of the same file at the same place. */
static bool module_is_same(const struct fact_module *a, const struct fact_module *b)
{
	return a->base == b->base && a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

bool module_is_ambiguous(const struct fact_module *modules, size_t count, uint64_t addr)
{
	const struct fact_module *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct fact_module *module = &modules[i];

		if (addr < module->start || addr >= module->end)
			continue;
		if (first && !module_is_same(first, module))
			return true;
		first = module;
	}
	return false;
}

static bool is_of_module(const struct fact_functions *functions,
			 const struct fact_function *function, const struct fact_module *module)
{
	if (!module || function->module == MODULE_NONE)
		return !module && function->module == MODULE_NONE;
	return module_is_same(&functions->modules[function->module], module);
}

/* Exact matches only: the recorder noted the functions by the addresses in stacks. */
const char *function_at(const struct fact_functions *functions, uint64_t addr,
			const struct fact_module *module)
{
	size_t low = 0, high = functions->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (functions->at[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < functions->count && functions->at[low].addr == addr; low++)
		if (is_of_module(functions, &functions->at[low], module))
			return functions->at[low].name;
	return NULL;
}
