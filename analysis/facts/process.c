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

const struct fact_sample *fact_sample_at(const struct fact_process *process, uint64_t time_ns)
{
	size_t i = process->timeline_count;

	while (i > 1 && process->timeline[i - 1].time_ns > time_ns)
		i--;
	return i ? &process->timeline[i - 1] : NULL;
}

uint64_t fact_live_seq(const struct fact_process *process, unsigned ordinal)
{
	if (ordinal >= CUF_DEVICES_MAX)
		return process->moment_seq;
	return process->live.device_seq[ordinal];
}

size_t fact_live_seqs(const struct fact_process *process, uint64_t seqs[CUF_DEVICES_MAX + 1])
{
	size_t count = 1;

	seqs[0] = process->moment_seq;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		size_t i = 0;

		while (i < count && seqs[i] != process->live.device_seq[d])
			i++;
		if (i == count)
			seqs[count++] = process->live.device_seq[d];
	}
	return count;
}
