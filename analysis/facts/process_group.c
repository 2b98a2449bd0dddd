/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes of one run: whose failure came first, who was ended by it, and who holds more than its peers. A
 * launcher (torchrun, mpirun, a pod) ends the other workers within seconds of the first failure, and their recordings
 * then look like failures of their own; one answer serves better than as many as there are ranks.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/facts/build.h"

/*
 * A worker that ended abnormally this long after the first failure, without one of its own, counts as ended by it:
 * torch elastic sends SIGTERM at once and SIGKILL after 30 s; Kubernetes' grace period is 30 s as well.
 */
#define AFTERMATH_NS (60 * 1000000000ull)
/* Who was killed left no end record, only the last thing it did; a rank that waits for the others does nothing for a while. */
#define IDLE_NS (600 * 1000000000ull)
/* A peer stands out with a tenth and 64 MiB more than the median: less is allocation granularity and warm-up order. */
#define STAND_OUT_RATIO 1.1
#define STAND_OUT_BYTES (64ull << 20)

static const char *rank_of(const struct fact_process *p)
{
	static const char *const names[] = { "RANK=", "LOCAL_RANK=", "OMPI_COMM_WORLD_RANK=", "SLURM_PROCID=" };
	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		for (size_t i = 0; i < p->text_count; i++)
			if (p->texts[i].type == CUF_META_ENV && !strncmp(p->texts[i].text, names[n], strlen(names[n])))
				return p->texts[i].text + strlen(names[n]);
	return NULL;
}

static bool abnormal(const struct fact_process *p)
{
	return p->end == END_SIGNAL || p->end == END_KILLED || p->end == END_OOM_KILLED ||
	       (p->end == END_EXIT && p->end_status != 0 && p->end_status != CUF_UNKNOWN);
}

/* When a process failed by itself: its fatal incident, or the kernel's kill; CUF_UNKNOWN: it did not. */
static uint64_t failed_ns(const struct facts *facts, uint32_t index)
{
	const struct fact_process *p = &facts->processes[index];
	if (p->fatal_incident)
		return facts->incidents[p->fatal_incident - 1].time_ns;
	return p->end == END_OOM_KILLED ? p->end_ns : CUF_UNKNOWN;
}

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

static bool is_ancestor(const struct facts *facts, uint32_t of, uint32_t process)
{
	uint32_t up = facts->processes[of].parent;
	for (size_t steps = 0; up != FACT_NONE && steps < facts->process_count; steps++, up = facts->processes[up].parent)
		if (up == process)
			return true;
	return false;
}

static bool ended_after(const struct fact_process *p, uint64_t at)
{
	bool last_seen_alone = p->end == END_KILLED;
	if (p->end_ns < at)
		return last_seen_alone && at - p->end_ns <= IDLE_NS;
	return p->end_ns - at <= AFTERMATH_NS;
}

static void find_ended(struct facts *facts)
{
	struct fact_process_group *crowd = &facts->group;
	uint64_t at = crowd->leader == FACT_NONE ? CUF_UNKNOWN : failed_ns(facts, crowd->leader);
	for (uint32_t i = 0; at != CUF_UNKNOWN && i < facts->process_count; i++) {
		struct fact_process *p = &facts->processes[i];
		/* a parent that ends with a failure says what its child's end made it say, and so is no victim of it */
		if (i == crowd->leader || failed_ns(facts, i) != CUF_UNKNOWN || !abnormal(p) || is_ancestor(facts, crowd->leader, i) || !ended_after(p, at))
			continue;
		p->ended_by = crowd->leader;
		crowd->ended_count++;
	}
}

static uint64_t live_of(const struct fact_sample *s)
{
	uint64_t sum = 0;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
		sum += s->device_live_bytes[d];
	return sum;
}

/* What the recorder counted last. */
static uint64_t live_last(const struct reader *r)
{
	static const unsigned kinds[] = { CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC, CUF_KIND_GRAPH, CUF_KIND_VMM };
	uint64_t sum = 0;
	for (uint64_t d = 0; d < reader_count(r, CUF_SEC_DEVICES); d++) {
		const struct cuf_device *device = reader_at(r, CUF_SEC_DEVICES, d);
		for (size_t k = 0; device->present && k < sizeof kinds / sizeof *kinds; k++)
			sum += device->live_bytes[kinds[k]];
	}
	return sum;
}

/* Device memory at a time, by the last sample before it, or the recorder's counts where no sample followed; without a time, the
 * most there was. */
static uint64_t held_at(const struct fact_process *p, const struct reader *r, uint64_t time_ns)
{
	uint64_t held = 0;
	size_t i = 0;
	for (; i < p->timeline_count && p->timeline[i].time_ns <= time_ns; i++) {
		uint64_t live = live_of(&p->timeline[i]);
		if (time_ns != CUF_UNKNOWN || live > held)
			held = live;
	}
	if (i == p->timeline_count && time_ns != CUF_UNKNOWN)
		held = live_last(r);
	return held ? held : CUF_UNKNOWN;
}

static int by_bytes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static bool same_program(const struct fact_process *a, const struct fact_process *b)
{
	return !strcmp(a->exe, b->exe) && !a->rank == !b->rank;
}

/* Peers are those of the program that holds most; three are the least that have a middle. */
static void find_outlier(struct build *b)
{
	struct facts *facts = b->facts;
	struct fact_process_group *crowd = &facts->group;
	uint64_t *held = xalloc_zeroed(facts->process_count, sizeof *held), at = crowd->leader == FACT_NONE ? CUF_UNKNOWN : failed_ns(facts, crowd->leader);
	uint32_t most = FACT_NONE;
	for (uint32_t i = 0; i < facts->process_count; i++) {
		struct fact_process *p = &facts->processes[i];
		p->held_bytes = held_at(p, b->run->processes[i].reader, at);
		if (p->held_bytes != CUF_UNKNOWN && (most == FACT_NONE || p->held_bytes > facts->processes[most].held_bytes))
			most = i;
	}
	for (uint32_t i = 0; most != FACT_NONE && i < facts->process_count; i++)
		if (facts->processes[i].held_bytes != CUF_UNKNOWN && same_program(&facts->processes[i], &facts->processes[most]))
			held[crowd->peer_count++] = facts->processes[i].held_bytes;
	if (crowd->peer_count >= 3) {
		qsort(held, crowd->peer_count, sizeof *held, by_bytes);
		crowd->median_bytes = held[crowd->peer_count / 2];
		if ((double)facts->processes[most].held_bytes > STAND_OUT_RATIO * (double)crowd->median_bytes &&
		    facts->processes[most].held_bytes - crowd->median_bytes > STAND_OUT_BYTES)
			crowd->outlier = most;
	}
	free(held);
}

void build_process_group(struct build *b)
{
	struct facts *facts = b->facts;
	facts->group = (struct fact_process_group){ .leader = FACT_NONE, .outlier = FACT_NONE, .median_bytes = CUF_UNKNOWN };
	for (uint32_t i = 0; i < facts->process_count; i++) {
		facts->processes[i].rank = rank_of(&facts->processes[i]);
		facts->processes[i].ended_by = FACT_NONE;
	}
	find_leader(facts);
	if (facts->group.leader != FACT_NONE && facts->processes[facts->group.leader].fatal_incident)
		facts->fatal_incident = facts->processes[facts->group.leader].fatal_incident;
	find_ended(facts);
	find_outlier(b);
}
