/* SPDX-License-Identifier: Apache-2.0 */
/* Who was killed comes first, then who held most. */
#include "analysis/facts/passes/passes.h"

#include <signal.h>
#include "analysis/base/numbers.h"

/* A process that is larger than another by less is not more worth a look: the first one, which is
 * the parent, is what people know. */
#define CLEARLY_LARGER 1.1

/* How a process ended counts most: out of memory, the kernel kills; a crash is seldom meant; and an
 * image that exec replaced only started the next one. */
enum rank { RANK_REPLACED, RANK_ENDED, RANK_CRASHED, RANK_KILLED_FOR_MEMORY };

/* SIGTERM and SIGINT come from a person or a supervisor, so they are ordinary ends. */
static enum rank rank_of(const struct fact_process *process)
{
	switch (process->end) {
	case END_OOM_KILLED:
		return RANK_KILLED_FOR_MEMORY;
	case END_KILLED:
		return RANK_CRASHED;
	case END_SIGNAL:
		if (process->end_status == SIGTERM || process->end_status == SIGINT)
			return RANK_ENDED;
		return RANK_CRASHED;
	case END_EXEC:
		return RANK_REPLACED;
	default:
		return RANK_ENDED;
	}
}

/* Of resident memory, as it was sampled. */
static uint64_t host_peak(const struct fact_process *process)
{
	uint64_t peak = 0;

	for (size_t i = 0; i < process->timeline_count; i++)
		if (process->timeline[i].rss_bytes != CUF_UNKNOWN)
			peak = most_of(peak, process->timeline[i].rss_bytes);
	return peak;
}

static bool is_clearly_larger(uint64_t bytes, uint64_t than)
{
	return (double)bytes > CLEARLY_LARGER * (double)than;
}

/* Device memory orders before the host's: a GPU is what a run is about. */
static bool is_better(const struct facts *facts, const uint64_t *device_bytes, uint32_t process,
		      uint32_t best)
{
	const struct fact_process *one = &facts->processes[process],
				  *other = &facts->processes[best];
	uint64_t held = known_or_zero(device_bytes[process]),
		 most = known_or_zero(device_bytes[best]);

	if (rank_of(one) != rank_of(other))
		return rank_of(one) > rank_of(other);
	if (held != most)
		return held > most;
	return is_clearly_larger(host_peak(one), host_peak(other));
}

uint32_t main_process(const struct facts *facts, const uint64_t *device_bytes)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < facts->process_count; i++)
		if (is_better(facts, device_bytes, i, best))
			best = i;
	return best;
}
