/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the tables of a process. */
#include "analysis/facts/process.h"

const struct fact_module *fact_module_at(const struct fact_process *process, uint64_t addr,
					 uint64_t time_ns)
{
	return module_at(process->modules, process->module_count, addr, time_ns);
}

const char *fact_function_at(const struct fact_process *process, uint64_t addr,
			     const struct fact_module *module)
{
	const struct fact_functions functions = { process->functions, process->function_count,
						  process->modules };

	return function_at(&functions, addr, module);
}
