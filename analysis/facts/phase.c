/* SPDX-License-Identifier: Apache-2.0 */
/* What a process was doing at a time. */
#include "analysis/facts/process.h"

const char *const phase_source_names[PHASE_SOURCE_MAX] = { "mark", "nvtx", "inferred" };

static bool covers(const struct fact_phase *phase, uint64_t time_ns)
{
	return !phase->is_mark && phase->begin_ns <= time_ns &&
	       (phase->end_ns == CUF_UNKNOWN || time_ns <= phase->end_ns);
}

/* Which of two is more telling for a thread; 0: this one tells nothing of it. */
static unsigned rank_of(const struct fact_phase *phase, uint32_t tid, uint32_t first_tid)
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
					: rank_of(phase, tid, recorded->pid);
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
