/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes of one run: whose failure came first, who was ended by it, and who holds more
 * than its peers. A launcher (torchrun, mpirun, a pod) ends the other workers within seconds of the
 * first failure, and their recordings then look like failures of their own; one answer serves
 * better than as many as there are ranks.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/passes.h"
#include "analysis/replay/run_groups.h"

/*
 * A worker that ended abnormally this long after the first failure, without one of its own, counts
 * as ended by it: torch elastic sends SIGTERM at once and SIGKILL after 30 s; Kubernetes' grace
 * period is 30 s as well.
 */
#define AFTERMATH_NS (60 * 1000000000ull)
/* Who was killed left no end record, only the last thing it did; a rank that waits for the others
 * does nothing for a while. */
#define IDLE_NS (600 * 1000000000ull)
/* A peer stands out with a tenth and 64 MiB more than the median: less is allocation granularity
 * and warm-up order. */
#define STAND_OUT_RATIO 1.1
#define STAND_OUT_BYTES (64ull << 20)

/* Killed, or ended with a status that is not 0. */
static bool abnormal(const struct fact_process *process)
{
	return process->end == END_SIGNAL || process->end == END_KILLED ||
	       process->end == END_OOM_KILLED ||
	       (process->end == END_EXIT && process->end_status != 0 &&
		process->end_status != CUF_UNKNOWN);
}

/* When a process failed by itself: its fatal incident, or the kernel's kill; CUF_UNKNOWN: it did
 * not. */
static uint64_t failed_ns(const struct facts *facts, uint32_t index)
{
	const struct fact_process *process = &facts->processes[index];
	if (process->fatal_incident)
		return facts->incidents[process->fatal_incident - 1].time_ns;
	if (process->end != END_OOM_KILLED)
		return CUF_UNKNOWN;
	return process->end_ns;
}

/* CUF_UNKNOWN: no process failed by itself. */
static uint64_t leader_failed_ns(const struct facts *facts)
{
	if (facts->group.leader == FACT_NONE)
		return CUF_UNKNOWN;
	return failed_ns(facts, facts->group.leader);
}

/* The process that failed first. */
static void find_leader(struct facts *facts)
{
	struct fact_process_group *crowd = &facts->group;
	uint64_t first = CUF_UNKNOWN;
	for (uint32_t i = 0; i < facts->process_count; i++) {
		uint64_t at = failed_ns(facts, i);
		crowd->failed_count += at != CUF_UNKNOWN;
		if (at < first) {
			first = at;
			crowd->leader = i;
		}
	}
}

/* The number of steps is limited because damaged recordings could make a cycle. */
static bool is_ancestor(const struct facts *facts, uint32_t of, uint32_t process)
{
	uint32_t up = facts->processes[of].parent;
	for (size_t steps = 0; up != FACT_NONE && steps < facts->process_count;
	     steps++, up = facts->processes[up].parent)
		if (up == process)
			return true;
	return false;
}

/* A killed process has no end record, so its last event may be long before its end. */
static bool ended_after(const struct fact_process *process, uint64_t at)
{
	bool last_seen_alone = process->end == END_KILLED;
	if (process->end_ns < at)
		return last_seen_alone && at - process->end_ns <= IDLE_NS;
	return process->end_ns - at <= AFTERMATH_NS;
}

/* Marks the processes that the leader's failure ended. */
static void find_ended(struct facts *facts)
{
	struct fact_process_group *crowd = &facts->group;
	uint64_t at = leader_failed_ns(facts);
	for (uint32_t i = 0; at != CUF_UNKNOWN && i < facts->process_count; i++) {
		struct fact_process *process = &facts->processes[i];
		/* A parent that ends with a failure passes its child's failure on, and is not a
		 * victim of it. */
		if (i == crowd->leader || failed_ns(facts, i) != CUF_UNKNOWN ||
		    !abnormal(process) || is_ancestor(facts, crowd->leader, i) ||
		    !ended_after(process, at))
			continue;
		process->ended_by = crowd->leader;
		crowd->ended_count++;
	}
}

static uint64_t live_of(const struct fact_sample *sample)
{
	uint64_t sum = 0;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
		sum += sample->device_live_bytes[d];
	return sum;
}

/* What the recorder counted last. */
static uint64_t live_last(const struct reader *reader)
{
	static const unsigned kinds[] = { CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC,
					  CUF_KIND_GRAPH, CUF_KIND_VMM };
	uint64_t sum = 0;
	for (uint64_t d = 0; d < reader_count(reader, CUF_SEC_DEVICES); d++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, d);
		for (size_t k = 0; device->present && k < sizeof kinds / sizeof *kinds; k++)
			sum += device->live_bytes[kinds[k]];
	}
	return sum;
}

/* Device memory at a time, by the last sample before it, or the recorder's counts where no sample
 * followed; without a time, the most there was. */
static uint64_t held_at(const struct fact_process *process, const struct reader *reader,
			uint64_t time_ns)
{
	uint64_t held = 0;
	size_t i = 0;
	for (; i < process->timeline_count && process->timeline[i].time_ns <= time_ns; i++) {
		uint64_t live = live_of(&process->timeline[i]);
		if (time_ns != CUF_UNKNOWN || live > held)
			held = live;
	}
	if (i == process->timeline_count && time_ns != CUF_UNKNOWN)
		held = live_last(reader);
	if (!held)
		return CUF_UNKNOWN;
	return held;
}

/* Of each device its own peak, at whatever time. */
static uint64_t device_peak(const struct reader *reader)
{
	uint64_t sum = 0;
	bool any = false;

	for (uint64_t d = 0; d < reader_count(reader, CUF_SEC_DEVICES); d++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, d);

		any |= device->present && device->peak_bytes;
		if (device->present && __builtin_add_overflow(sum, device->peak_bytes, &sum))
			return CUF_UNKNOWN;
	}
	return any ? sum : CUF_UNKNOWN;
}

/* With a rank or both without one: a launcher is no peer of its workers. */
static bool same_program(const struct fact_process *process, const struct fact_process *recorded)
{
	return !strcmp(process->exe, recorded->exe) && !process->rank == !recorded->rank;
}

/* Peers are those of the program that holds most; three are the least that have a middle. */
static void find_outlier(struct facts *facts)
{
	struct fact_process_group *crowd = &facts->group;
	uint64_t *held = xalloc_zeroed(facts->process_count, sizeof *held),
		 at = leader_failed_ns(facts);
	uint32_t most = FACT_NONE;
	for (uint32_t i = 0; i < facts->process_count; i++) {
		struct fact_process *process = &facts->processes[i];
		process->held_bytes = held_at(process, facts->run->processes[i].reader, at);
		process->device_peak_bytes = device_peak(facts->run->processes[i].reader);
		if (process->held_bytes != CUF_UNKNOWN &&
		    (most == FACT_NONE || process->held_bytes > facts->processes[most].held_bytes))
			most = i;
	}
	for (uint32_t i = 0; most != FACT_NONE && i < facts->process_count; i++)
		if (facts->processes[i].held_bytes != CUF_UNKNOWN &&
		    same_program(&facts->processes[i], &facts->processes[most]))
			held[crowd->peer_count++] = facts->processes[i].held_bytes;
	if (crowd->peer_count >= 3) {
		qsort(held, crowd->peer_count, sizeof *held, compare_uint64);
		crowd->median_bytes = held[crowd->peer_count / 2];
		if ((double)facts->processes[most].held_bytes >
			    STAND_OUT_RATIO * (double)crowd->median_bytes &&
		    facts->processes[most].held_bytes - crowd->median_bytes > STAND_OUT_BYTES)
			crowd->outlier = most;
	}
	free(held);
}

/* The leader's fatal incident explains the run; without a leader that has one, the last of all. */
static uint64_t fatal_incident_of(const struct facts *facts)
{
	uint32_t leader = facts->group.leader;

	if (leader != FACT_NONE && facts->processes[leader].fatal_incident)
		return facts->processes[leader].fatal_incident;
	for (size_t i = facts->incident_count; i--;)
		if (facts->incidents[i].outcome == OUTCOME_FATAL)
			return facts->processes[facts->incidents[i].process].fatal_incident;
	return 0;
}

void build_process_group(struct facts *facts)
{

	facts->group = (struct fact_process_group){ .leader = FACT_NONE,
						    .outlier = FACT_NONE,
						    .median_bytes = CUF_UNKNOWN };
	for (uint32_t i = 0; i < facts->process_count; i++) {
		facts->processes[i].rank = rank_of_texts(facts->processes[i].texts,
							 facts->processes[i].text_count);
		facts->processes[i].ended_by = FACT_NONE;
	}
	find_leader(facts);
	facts->fatal_incident = fatal_incident_of(facts);
	find_ended(facts);
	find_outlier(facts);
}
