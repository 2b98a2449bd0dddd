/* SPDX-License-Identifier: Apache-2.0 */
/* A list of series that were seen, and since when each is true or false. */
#include "analysis/cmd/live/firing.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

enum { SERIES_MAX = 4096 };
static const uint64_t forget_ns = 600000000000; /* after the last sample */

struct look {
	struct firings *firings;
	const struct rule *rule;
	const struct watch *watch;
	uint64_t now_ns;
	firing_fire *fire;
	void *state;
};

static struct series *find_series(const struct firings *firings, const struct rule *rule,
				  const char *name)
{
	for (size_t i = 0; i < firings->count; i++)
		if (firings->series[i].rule == rule && !strcmp(firings->series[i].name, name))
			return &firings->series[i];
	return NULL;
}

/* Whoever was there before us has counted without us; of a successor everything is news. */
static double base_of(const struct look *look, const struct rule_sample *sample)
{
	const struct watch *watch = look->watch;

	if (look->rule->subject.metric->type != METRIC_COUNTER)
		return 0;
	for (size_t i = 0; i < watch->count; i++)
		if (!strcmp(watch->processes[i]->name, sample->process) &&
		    watch->processes[i]->identity.start_ns < look->firings->begun_ns)
			return sample->value;
	return 0;
}

static struct series *firing_series_of(const struct look *look, const struct rule_sample *sample)
{
	struct firings *firings = look->firings;
	struct series *series = find_series(firings, look->rule, sample->series);

	if (series)
		return series;
	if (firings->count == SERIES_MAX) {
		firings->left_out++;
		return NULL;
	}
	xalloc_grow(&firings->series, firings->count, &firings->room, sizeof *series);
	series = &firings->series[firings->count];
	*series = (struct series){ .rule = look->rule, .base = base_of(look, sample) };
	memcpy(series->name, sample->series, sizeof series->name);
	firings->count++;
	return series;
}

static uint64_t hold_ns(const struct rule *rule) { return (uint64_t)(rule->hold_s * 1e9); }

static void be_false(struct series *series, uint64_t now_ns)
{
	series->true_since_ns = 0;
	if (!series->false_since_ns)
		series->false_since_ns = now_ns;
	if (now_ns - series->false_since_ns >= hold_ns(series->rule))
		series->has_fired = false;
}

static void be_true(struct series *series, const struct look *look, struct rule_sample *sample)
{
	double whole = sample->value + series->base;

	series->false_since_ns = 0;
	if (!series->true_since_ns)
		series->true_since_ns = look->now_ns;
	if (series->has_fired || look->now_ns - series->true_since_ns < hold_ns(series->rule) ||
	    !look->fire(look->state, series->rule, sample))
		return;
	series->has_fired = true;
	if (series->rule->subject.metric->type == METRIC_COUNTER)
		series->base = whole; /* the next one is news again */
}

static void note_sample(void *state, const struct rule_sample *seen)
{
	const struct look *look = state;
	struct series *series = firing_series_of(look, seen);
	struct rule_sample sample = *seen;

	if (!series)
		return;
	series->seen_ns = look->now_ns;
	sample.value -= series->base;
	if (rule_holds(look->rule, sample.value, sample.share))
		be_true(series, look, &sample);
	else
		be_false(series, look->now_ns);
}

void firing_look(struct firings *firings, const struct rule *rule, const struct watch *watch,
		 uint64_t now_ns, firing_fire *fire, void *state)
{
	struct look look = { firings, rule, watch, now_ns, fire, state };

	rule_read(rule, watch, note_sample, &look);
	for (size_t i = firings->count; i-- > 0; ) {
		struct series *series = &firings->series[i];

		if (series->rule != rule || series->seen_ns == now_ns)
			continue;
		be_false(series, now_ns);
		if (now_ns - series->seen_ns > forget_ns)
			*series = firings->series[--firings->count];
	}
}

void firing_fini(struct firings *firings)
{
	free(firings->series);
	*firings = (struct firings){ 0 };
}
