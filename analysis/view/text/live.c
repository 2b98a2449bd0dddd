/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the judgement of a run that still runs. */
#include "analysis/view/text/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/facts/places.h"

enum { WORDS = 320, NAME = 96 };
#define FOREVER_S 1e9 /* no machine runs for so long */

static struct unit_text seconds_text(double seconds)
{
	return units_duration((uint64_t)(fmin(seconds, FOREVER_S) * 1e9));
}

void live_early(const struct judgement *judgement, char *out, size_t bytes)
{
	*out = 0;
	if (judgement && judgement->is_too_early)
		snprintf(out, bytes, "too early to judge: %s of %s",
			 seconds_text(judgement->observed_s).s,
			 seconds_text(judgement->needed_s).s);
}

const struct live_resource *live_judged_first(const struct judgement *judgement)
{
	return judgement ? live_first_to_end(judgement->resources, judgement->resource_count) :
			   NULL;
}

/* The largest one in that state; sites are sorted. */
static const struct live_site *largest(const struct judgement *judgement, enum live_state state)
{
	for (size_t i = 0; i < judgement->site_count; i++)
		if (judgement->sites[i].state == state)
			return &judgement->sites[i];
	return NULL;
}

void live_print_rising(const struct text *text)
{
	const struct judgement *judgement = text->facts->judgement;
	const struct live_site *warming, *filling, *live;
	char words[WORDS] = "", name[NAME];
	struct place place;

	if (!judgement)
		return;
	warming = largest(judgement, LIVE_WARMING);
	filling = largest(judgement, LIVE_FILLING);
	live = warming ? warming : filling;
	if (!live)
		return;
	place_of(text->places, &live->site->stack, &place);
	place_text(&place, name, sizeof name);
	text_append(words, sizeof words, "%s %s, and holds %s: ", name,
		    warming ? "rises" : "is filled",
		    text_bytes(live->site->bytes, live->site->basis).s);
	if (!warming)
		text_append(words, sizeof words, "its pace falls.");
	else if (live->rising_s < live->needed_s)
		text_append(words, sizeof words, "too early to judge, %s of %s.",
			    seconds_text(live->rising_s).s, seconds_text(live->needed_s).s);
	else
		text_append(words, sizeof words, "too few turns of the work to judge.");
	text_words(text, STYLE_PLAIN, "", 0, 2, words);
}

void live_print_forecast(const struct text *text)
{
	const struct live_resource *first = live_judged_first(text->facts->judgement);
	struct unit_text soonest, latest;
	char words[WORDS] = "";

	if (!first)
		return;
	soonest = seconds_text(first->oom_s[LIVE_SOONEST]);
	latest = seconds_text(first->oom_s[LIVE_LATEST]);
	if (first->kind == LIVE_GPU)
		text_append(words, sizeof words, "GPU %u",
			    text->facts->devices[first->device].ordinal);
	else
		text_append(words, sizeof words, "The memory of the %s",
			    live_resource_words[first->kind]);
	text_append(words, sizeof words, " is full in %s at this rate",
		    seconds_text(first->oom_s[LIVE_EXPECTED]).s);
	if (first->oom_s[LIVE_LATEST] < FOREVER_S && strcmp(soonest.s, latest.s))
		text_append(words, sizeof words, " (%s to %s)", soonest.s, latest.s);
	if (first->burst_bytes)
		text_append(words, sizeof words, ", with a burst of %s as before",
			    units_bytes(first->burst_bytes).s);
	text_append(words, sizeof words, ".");
	text_words(text, STYLE_WARN, "", 0, 2, words);
}
