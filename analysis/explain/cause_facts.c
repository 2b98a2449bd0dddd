/* SPDX-License-Identifier: Apache-2.0 */
/* incident.cause and facts.cause: which vectors are computed, and whose verdict is the run's. */
#include "analysis/explain/causes.h"

#include <string.h>

/* Each fatal failure's history is read once more: of the last ones alone. What was survived costs nothing. */
enum { LOOKED_AT_MAX = 8 };

static void judge_incidents(struct build *build)
{
	size_t looked_at = 0;
	for (size_t n = build->facts->incident_count; n--;) {
		struct fact_incident *incident = &build->facts->incidents[n];
		bool survived = incident->outcome == OUTCOME_RECOVERED ||
				incident->outcome == OUTCOME_HANDLED;
		bool of_its_process = build->facts->processes[incident->process].fatal_incident ==
				      incident->id;
		struct evidence evidence;
		if (!survived && !of_its_process && looked_at++ >= LOOKED_AT_MAX)
			continue;
		evidence = evidence_of(build, incident->process, incident->device, incident);
		incident->cause = cause_judge(build, &evidence);
	}
}

/* Ended for want of host memory, or something grows without end: the most certain of them, and of those the first. */
static const struct fact_cause *judge_ends(struct build *build)
{
	const struct fact_cause *best = NULL, *now;
	struct evidence evidence;
	for (uint32_t p = 0; p < build->facts->process_count; p++) {
		if (build->facts->processes[p].end != END_OOM_KILLED)
			continue;
		evidence = evidence_of(build, p, FACT_NONE, NULL);
		now = cause_judge(build, &evidence);
		if (now && (!best || now->confidence > best->confidence))
			best = now;
	}
	if (best)
		return best;
	for (size_t i = 0; i < build->facts->leak_count &&
			   build->facts->leaks[i].class == CLASS_LEAK && i < LOOKED_AT_MAX;
	     i++) {
		const struct fact_site *site = &build->facts->leaks[i];
		evidence = evidence_of(build, site->process, site->device, NULL);
		now = cause_judge(build, &evidence);
		if (now && *now->id && (!best || now->confidence > best->confidence))
			best = now;
	}
	return best;
}

void build_causes(struct build *build)
{
	struct facts *facts = build->facts;
	judge_incidents(build);
	if (facts->fatal_incident)
		facts->cause = facts->incidents[facts->fatal_incident - 1].cause;
	else
		facts->cause = judge_ends(build);
}
