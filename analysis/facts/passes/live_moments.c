/* SPDX-License-Identifier: Apache-2.0 */
/* Where the live blocks of the moment are in each recording. */
#include "analysis/facts/passes/build.h"

#include "analysis/host/heap.h"

/* The peak of a device is a time; each process that uses it stood somewhere then. */
static uint64_t seq_at_peak(struct build *build, uint32_t process, uint32_t device)
{
	struct moment moment = moment_of_device(build, device);
	uint64_t seq;

	return process_at(build, process, &moment, &seq) ? seq : 0;
}

void build_live_moments(struct build *build)
{
	for (uint32_t p = 0; p < build->run->count; p++) {
		struct fact_process *process = &build->facts->processes[p];
		struct heap_moment host = host_moment_of(build, p);

		process->live.host_ns = host.time_ns;
		process->live.host_events = host.events;
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
			process->live.device_seq[d] = process->moment_seq;
			if (build->options.at != FACTS_AT_PEAK ||
			    process->device_of[d] == FACT_NONE)
				continue;
			process->live.device_seq[d] = seq_at_peak(build, p, process->device_of[d]);
		}
	}
}
