/* SPDX-License-Identifier: Apache-2.0 */
/* What RECENT and a judge who is asked once add to the facts. */
#include "analysis/explain/judge.h"

#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/explain/judge.h"
#include "analysis/measure/recent.h"

enum { MINUTE_S = 60, HOUR_S = 3600 };
#define SECOND_NS 1000000000ull

/* ---- processes[].recent ---- */

/* The moment of the report in the clock of the recording; CLOCK_MONOTONIC. */
static uint64_t moment_in(const struct facts *facts, uint32_t process)
{
	const struct cuf_header *header = &facts->run->processes[process].reader->header;
	const struct fact_process *fact = &facts->processes[process];
	uint64_t time_ns = least_of(facts->moment.time_ns, fact->end_ns);

	return header->start_ns + subtract_to_zero(time_ns, header->start_realtime_ns);
}

/*
 * What was free at the peak: the driver was seldom asked then. What this process held and what was
 * free add up to the same, unless others came or went.
 */
static uint64_t free_at_peak(const struct fact_device *device, uint64_t live_bytes,
			     uint64_t peak_bytes)
{
	uint64_t room_bytes;

	if (!is_known(device->free_bytes) || !is_known(live_bytes) || !is_known(peak_bytes) ||
	    __builtin_add_overflow(device->free_bytes, live_bytes, &room_bytes))
		return CUF_UNKNOWN;
	return subtract_to_zero(room_bytes, peak_bytes);
}

static struct fact_extremes extremes_of(const struct recent *recent, unsigned subject,
					uint64_t until_ns, unsigned seconds,
					const struct fact_device *device)
{
	uint64_t from_ns = subtract_to_zero(until_ns, seconds * SECOND_NS);
	struct recent_extremes seen = recent_extremes(recent, subject, from_ns, until_ns);
	struct fact_extremes out = { .peak_bytes = seen.live_max_bytes,
				     .low_bytes = seen.live_min_bytes,
				     .free_bytes = CUF_UNKNOWN,
				     .inner_peak_bytes = seen.inner_max_bytes,
				     .outer_peak_bytes = seen.outer_max_bytes };

	if (device)
		out.free_bytes = least_of(seen.free_min_bytes,
					  free_at_peak(device, seen.live_last_bytes,
						       seen.live_max_bytes));
	return out;
}

/* False: this process does not use it. */
static bool fill_subject(const struct facts *facts, uint32_t process, const struct recent *recent,
			 unsigned subject, struct fact_recent *out)
{
	const struct fact_device *device = NULL;
	uint64_t until_ns = moment_in(facts, process);
	struct recent_extremes hour =
		recent_extremes(recent, subject, subtract_to_zero(until_ns, HOUR_S * SECOND_NS),
				until_ns);

	out->device = FACT_NONE;
	if (subject < CUF_RECENT_HOST)
		out->device = facts->processes[process].device_of[subject];
	if (!hour.known || (subject < CUF_RECENT_HOST && out->device == FACT_NONE))
		return false;
	if (out->device != FACT_NONE)
		device = &facts->devices[out->device];
	out->live_bytes = hour.live_last_bytes;
	out->burst_bytes = recent_burst(recent, subject);
	out->minute = extremes_of(recent, subject, until_ns, MINUTE_S, device);
	out->hour = extremes_of(recent, subject, until_ns, HOUR_S, device);
	return true;
}

void build_recent(struct facts *facts)
{
	for (uint32_t p = 0; p < facts->run->count; p++) {
		struct fact_process *process = &facts->processes[p];
		struct fact_recent rows[CUF_RECENT_SUBJECTS];
		struct recent recent;

		recent_read(facts->run->processes[p].reader, moment_in(facts, p), &recent);
		for (unsigned subject = 0; subject < CUF_RECENT_SUBJECTS; subject++)
			process->recent_count += fill_subject(facts, p, &recent, subject,
							      &rows[process->recent_count]);
		recent_fini(&recent);
		process->recent = arena_copy(facts->arena, rows, process->recent_count,
					     sizeof *rows);
	}
}

/* ---- judgement ---- */

/* A run that has ended is judged by all that it did, and a failure by what failed. */
static bool is_running(const struct facts *facts)
{

	return facts->process_count && facts->moment.kind != MOMENT_INCIDENT &&
	       facts->processes[facts->focus].end == END_RUNNING;
}

static bool is_accused_early(const struct judgement *judgement, const struct fact_site *site)
{
	for (size_t i = 0; i < judgement->site_count; i++) {
		const struct live_site *live = &judgement->sites[i];

		if (live->site->process == site->process && live->site->kind == site->kind &&
		    live->site->device == site->device &&
		    live->site->stack.id == site->stack.id)
			return live->state < LIVE_GROWING;
	}
	return judgement->is_too_early;
}

/* It rises, and no more is known. */
static void acquit(const struct judgement *judgement, struct fact_site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sites[i].class <= CLASS_GROWING && is_accused_early(judgement, &sites[i]))
			sites[i].class = CLASS_RETAINED;
}

void build_judgement(struct facts *facts, double warm_up_s)
{
	struct judge_rules once = { .warm_up_s = warm_up_s, .passes = 1 };
	struct judge_seen seen = { .facts = facts, .cgroup_working_bytes = CUF_UNKNOWN,
				   .machine_available_bytes = CUF_UNKNOWN };
	struct live_judge *judge;
	struct judgement *judgement;

	if (!is_running(facts))
		return;
	judge = live_judge_new(&once);
	judgement = arena_copy(facts->arena, live_judge_pass(judge, &seen), 1, sizeof *judgement);
	judgement->sites = arena_copy(facts->arena, judgement->sites, judgement->site_count,
				      sizeof *judgement->sites);
	judgement->resources = arena_copy(facts->arena, judgement->resources,
					  judgement->resource_count, sizeof *judgement->resources);
	live_judge_free(judge);
	acquit(judgement, facts->leaks, facts->leak_count);
	acquit(judgement, facts->growth, facts->growth_count);
	facts->judgement = judgement;
}
