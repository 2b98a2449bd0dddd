/* SPDX-License-Identifier: Apache-2.0 */
/* incident.cause and facts.cause: which vectors are computed, and whose verdict is the run's. */
#include "analysis/explain/causes.h"

#include <string.h>

/* Each fatal failure's history is read once more: of the last ones alone. What was survived costs nothing. */
enum { LOOKED_AT_MAX = 8 };

static void judge_incidents(struct build *b)
{
	size_t looked_at = 0;
	for (size_t n = b->facts->incident_count; n--;) {
		struct fact_incident *i = &b->facts->incidents[n];
		bool survived = i->outcome == OUTCOME_RECOVERED || i->outcome == OUTCOME_HANDLED;
		bool of_its_process = b->facts->processes[i->process].fatal_incident == i->id;
		struct evidence e;
		if (!survived && !of_its_process && looked_at++ >= LOOKED_AT_MAX)
			continue;
		e = evidence_of(b, i->process, i->device, i);
		i->cause = cause_judge(b, &e);
	}
}

/* Ended for want of host memory, or something grows without end: the most certain of them, and of those the first. */
static const struct fact_cause *judge_ends(struct build *b)
{
	const struct fact_cause *best = NULL, *now;
	struct evidence e;
	for (uint32_t p = 0; p < b->facts->process_count; p++) {
		if (b->facts->processes[p].end != END_OOM_KILLED)
			continue;
		e = evidence_of(b, p, FACT_NONE, NULL);
		now = cause_judge(b, &e);
		if (now && (!best || now->confidence > best->confidence))
			best = now;
	}
	if (best)
		return best;
	for (size_t i = 0; i < b->facts->leak_count && b->facts->leaks[i].class == CLASS_LEAK && i < LOOKED_AT_MAX; i++) {
		const struct fact_site *s = &b->facts->leaks[i];
		e = evidence_of(b, s->process, s->device, NULL);
		now = cause_judge(b, &e);
		if (now && *now->id && (!best || now->confidence > best->confidence))
			best = now;
	}
	return best;
}

void build_causes(struct build *build)
{
	struct facts *f = build->facts;
	judge_incidents(build);
	if (f->fatal_incident)
		f->cause = f->incidents[f->fatal_incident - 1].cause;
	else
		f->cause = judge_ends(build);
}
