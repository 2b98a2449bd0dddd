/* SPDX-License-Identifier: Apache-2.0 */
/* incident.cause and facts.cause: what is judged, and whose verdict is the run's. */
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/evidence/gather.h"
#include "analysis/explain/evidence/thresholds.h"

static const struct fact_cause *judge(const struct facts *facts, uint32_t process, uint32_t device,
				      const struct fact_incident *incident,
				      struct event_pass **heard)
{
	struct evidence evidence = evidence_of(facts, process, device, incident, heard);

	return cause_judge(&evidence);
}

/* Every incident has a cause of its own. The run has that of its fatal one. */
static void judge_incidents(struct facts *facts, struct event_pass **heard)
{
	size_t judged = 0;

	for (size_t n = facts->incident_count; n--;) {
		struct fact_incident *incident = &facts->incidents[n];

		if (!event_pass_is_for(facts, incident, &judged) &&
		    !incident_is_survived(incident))
			continue;
		incident->cause = judge(facts, incident->process, incident->device, incident,
					&heard[incident->process * EVENT_PASSES]);
	}
}

/* The more certain one; of equals the first. */
static const struct fact_cause *better(const struct fact_cause *best, const struct fact_cause *now)
{
	if (!best)
		return now;
	return now && now->confidence > best->confidence ? now : best;
}

static const struct fact_cause *judge_kills(const struct facts *facts)
{
	const struct fact_cause *best = NULL;

	for (uint32_t p = 0; p < facts->process_count; p++)
		if (facts->processes[p].end == END_OOM_KILLED)
			best = better(best, judge(facts, p, FACT_NONE, NULL, NULL));
	return best;
}

/* Whether an earlier leak is of the same process and device: then both have one cause. */
static bool is_leak_judged(const struct facts *facts, size_t leak)
{
	for (size_t i = 0; i < leak; i++)
		if (facts->leaks[i].process == facts->leaks[leak].process &&
		    facts->leaks[i].device == facts->leaks[leak].device)
			return true;
	return false;
}

/* facts.leaks has leaks first. */
static const struct fact_cause *judge_leaks(const struct facts *facts,
					    struct event_pass **heard)
{
	const struct fact_cause *best = NULL;

	for (size_t i = 0; i < facts->leak_count && i < JUDGED_MAX; i++) {
		const struct fact_site *site = &facts->leaks[i];
		const struct fact_cause *now;

		if (site->class != CLASS_LEAK)
			break;
		if (is_leak_judged(facts, i))
			continue;
		now = judge(facts, site->process, site->device, NULL,
			    &heard[site->process * EVENT_PASSES]);
		if (now && *now->id)
			best = better(best, now);
	}
	return best;
}

/* The statistics of its allocator have to show it: what is not live may be anything. */
static const struct fact_cause *judge_kept(const struct facts *facts)
{
	const struct fact_cause *best = NULL;

	for (uint32_t p = 0; p < facts->process_count; p++) {
		enum fact_host_verdict verdict = facts->processes[p].host.verdict;
		const struct fact_cause *now;

		if (verdict != HOST_CACHED && verdict != HOST_FRAGMENTED)
			continue;
		now = judge(facts, p, FACT_NONE, NULL, NULL);
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
void build_causes(struct facts *facts, struct event_pass **heard)
{

	judge_incidents(facts, heard);
	if (facts->fatal_incident)
		facts->cause = facts->incidents[facts->fatal_incident - 1].cause;
	else
		facts->cause = judge_kills(facts);
	if (!facts->fatal_incident && !facts->cause)
		facts->cause = judge_leaks(facts, heard);
	if (!facts->fatal_incident && !facts->cause)
		facts->cause = judge_kept(facts);
	facts->also = second_finding(facts);
}
