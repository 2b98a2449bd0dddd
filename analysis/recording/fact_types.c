/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the tables of modules and functions. */
#include "analysis/recording/fact_types.h"

#include "interpose/abi/format.h"

const char *const basis_names[BASIS_MAX] = { "", "observed", "inferred", "estimated" };

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

/* Exact matches only: the recorder noted the functions by the addresses in stacks. */
const char *function_at(const struct fact_function *functions, size_t count, uint64_t addr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (functions[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && functions[low].addr == addr ? functions[low].name : NULL;
}
