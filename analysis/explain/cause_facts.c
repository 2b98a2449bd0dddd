/* SPDX-License-Identifier: Apache-2.0 */
/* incident.cause and facts.cause: what is judged, and whose verdict is the run's. */
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/gather.h"
#include "analysis/explain/evidence/thresholds.h"

/* Each failure that was not survived costs a pass over the events, so only the last ones are
 * judged. */
enum { JUDGED_MAX = 8 };

static const struct fact_cause *judge(struct build *build, uint32_t process, uint32_t device,
				      const struct fact_incident *incident)
{
	struct evidence evidence = evidence_of(build, process, device, incident);

	return cause_judge(build, &evidence);
}

/* Every incident has a cause of its own. The run has that of its fatal one. */
static void judge_incidents(struct build *build)
{
	size_t judged = 0;

	for (size_t n = build->facts->incident_count; n--;) {
		struct fact_incident *incident = &build->facts->incidents[n];
		bool survived = incident->outcome == OUTCOME_RECOVERED ||
				incident->outcome == OUTCOME_HANDLED;
		bool ended_its_process =
			build->facts->processes[incident->process].fatal_incident == incident->id;

		if (!survived && !ended_its_process && judged++ >= JUDGED_MAX)
			continue;
		incident->cause = judge(build, incident->process, incident->device, incident);
	}
}

/* The more certain one; of equals the first. */
static const struct fact_cause *better(const struct fact_cause *best, const struct fact_cause *now)
{
	if (!best)
		return now;
	return now && now->confidence > best->confidence ? now : best;
}

static const struct fact_cause *judge_kills(struct build *build)
{
	const struct fact_cause *best = NULL;

	for (uint32_t p = 0; p < build->facts->process_count; p++)
		if (build->facts->processes[p].end == END_OOM_KILLED)
			best = better(best, judge(build, p, FACT_NONE, NULL));
	return best;
}

/* facts.leaks has leaks first. */
static const struct fact_cause *judge_leaks(struct build *build)
{
	const struct facts *facts = build->facts;
	const struct fact_cause *best = NULL;

	for (size_t i = 0; i < facts->leak_count && i < JUDGED_MAX; i++) {
		const struct fact_site *site = &facts->leaks[i];
		const struct fact_cause *now;

		if (site->class != CLASS_LEAK)
			break;
		now = judge(build, site->process, site->device, NULL);
		if (now && *now->id)
			best = better(best, now);
	}
	return best;
}

/* The statistics of its allocator have to show it: what is not live may be anything. */
static const struct fact_cause *judge_kept(struct build *build)
{
	const struct fact_cause *best = NULL;

	for (uint32_t p = 0; p < build->facts->process_count; p++) {
		enum fact_host_verdict verdict = build->facts->processes[p].host.verdict;
		const struct fact_cause *now;

		if (verdict != HOST_CACHED && verdict != HOST_FRAGMENTED)
			continue;
		now = judge(build, p, FACT_NONE, NULL);
		if (now && *now->id)
			best = better(best, now);
	}
	return best;
}

/*
 * A process can have two troubles: a leak of host memory next to a GPU that is full, or the other
 * way round. leaks[] has proven ones first, each class by size. What only grows must be worth a
 * line.
 */
static const struct fact_site *second_finding(const struct facts *facts)
{
	bool host = facts->cause && facts->cause->device == FACT_NONE;

	for (size_t i = 0; facts->cause && i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		if (site->class > CLASS_GROWING)
			break;
		if (site->holds_blocks || (site->device == FACT_NONE) == host)
			continue;
		if (site->class == CLASS_LEAK || site->bytes >= NOTABLE_BYTES)
			return site;
	}
	return NULL;
}

/* The run's cause is its fatal incident's; else of how it ended; else of what leaks; else of what
 * is kept although it is free. */
void build_causes(struct build *build)
{
	struct facts *facts = build->facts;

	judge_incidents(build);
	if (facts->fatal_incident)
		facts->cause = facts->incidents[facts->fatal_incident - 1].cause;
	else
		facts->cause = judge_kills(build);
	if (!facts->fatal_incident && !facts->cause)
		facts->cause = judge_leaks(build);
	if (!facts->fatal_incident && !facts->cause)
		facts->cause = judge_kept(build);
	facts->also = second_finding(facts);
}
