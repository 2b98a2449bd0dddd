/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in the tables of a process, and what it was doing at a time. */
#include "analysis/facts/facts.h"
#include "analysis/recording/reader.h"
#include "analysis/replay/run.h"

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

void stack_fill(const struct facts *facts, struct fact_stack *stack, uint64_t monotonic_ns)
{
	const struct reader *reader = facts->run->processes[stack->process].reader;
	stack->addrs = reader_stack(reader, stack->id, &stack->depth, &stack->stop);
	stack->is_joined = reader_stack_is_joined(reader, stack->id);
	stack->time_ns = reader_realtime(reader, monotonic_ns);
	if (!stack->depth)
		stack->id = 0;
}

const char *fact_hook_name(const struct fact_process *process, unsigned id)
{
	if (!id || id >= process->hook_name_count)
		return NULL;
	return process->hook_names[id];
}

uint32_t fact_device_of(const struct fact_process *process, unsigned ordinal)
{
	return ordinal < CUF_DEVICES_MAX ? process->device_of[ordinal] : FACT_NONE;
}

unsigned fact_ordinal_of(const struct fact_process *process, uint32_t device)
{
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
		if (process->device_of[d] == device)
			return d;
	return CUF_DEVICE_NONE;
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

/* ---- phases ---- */

const char *const phase_source_names[PHASE_SOURCE_MAX] = { "mark", "nvtx", "inferred" };

static bool covers(const struct fact_phase *phase, uint64_t time_ns)
{
	return !phase->is_mark && phase->begin_ns <= time_ns &&
	       (phase->end_ns == CUF_UNKNOWN || time_ns <= phase->end_ns);
}

/* Which of two is more telling for a thread; 0: this one tells nothing of it. */
static unsigned end_rank_of(const struct fact_phase *phase, uint32_t tid, uint32_t first_tid)
{
	if (phase->source == PHASE_INFERRED)
		return 1;
	if (phase->tid == tid && tid)
		return 1000 + phase->depth;
	if (!phase->tid)
		return 500;
	if (phase->tid != first_tid && tid)
		return 0;
	if (phase->depth > 400)
		return 2 + 400;
	return 2 + phase->depth;
}

const struct fact_phase *phase_at(const struct fact_process *recorded, uint32_t tid,
				  uint64_t time_ns)
{
	const struct fact_phase *best = NULL;
	unsigned best_rank = 0;
	for (size_t i = 0; i < recorded->phase_count && recorded->phases[i].begin_ns <= time_ns;
	     i++) {
		const struct fact_phase *phase = &recorded->phases[i];
		unsigned rank = phase->is_request || !covers(phase, time_ns)
					? 0
					: end_rank_of(phase, tid, recorded->pid);
		if (rank && rank >= best_rank) { /* of equals the one that began last */
			best = phase;
			best_rank = rank;
		}
	}
	return best;
}

const struct fact_phase *request_at(const struct fact_process *recorded, uint32_t tid,
				    uint64_t time_ns)
{
	const struct fact_phase *own = NULL, *any = NULL;
	size_t open = 0;
	for (size_t i = 0; i < recorded->phase_count && recorded->phases[i].begin_ns <= time_ns;
	     i++) {
		const struct fact_phase *phase = &recorded->phases[i];
		if (!phase->is_request || !covers(phase, time_ns))
			continue;
		own = phase->tid == tid ? phase : own;
		any = phase;
		open++;
	}
	if (own)
		return own;
	return open == 1 ? any : NULL;
}
