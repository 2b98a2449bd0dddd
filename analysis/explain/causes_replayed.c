/* SPDX-License-Identifier: Apache-2.0 */
/* See causes_replayed.h. */
#include "analysis/explain/causes_replayed.h"

#include <string.h>
#include "analysis/base/units.h"

/* What an advice sets, by words in its text, and the row of the replay that tried it. */
static const struct { const char *words, *row; } settings[] = {
	{ "expandable_segments:True", "expandable-segments" },
	{ "set_per_process_memory_fraction", "whole-device" },
};

static const struct fact_what_if *row_named(const struct fact_what_ifs *played, const char *id)
{
	for (size_t i = 0; i < played->count; i++)
		if (!strcmp(played->rows[i].id, id) && !played->rows[i].why_not)
			return &played->rows[i];
	return NULL;
}

static const struct fact_what_if *row_of(const struct fact_what_ifs *played,
					 const struct fact_fix *fix)
{
	for (size_t i = 0; fix->knob && i < sizeof settings / sizeof *settings; i++)
		if (strstr(fix->text, settings[i].words))
			return row_named(played, settings[i].row);
	return NULL;
}

/* The first setting that fits: the smallest change. */
static const struct fact_what_if *best_setting(const struct fact_what_ifs *played)
{
	for (size_t i = 0; i < played->count; i++)
		if (played->rows[i].fits && played->rows[i].knob &&
		    !strcmp(played->rows[i].kind, "setting"))
			return &played->rows[i];
	return NULL;
}

static const char *with_room(struct arena *arena, const char *text, const struct fact_what_if *row)
{
	return arena_format(arena, "%s (replayed: fits, %s to spare)", text,
			    units_bytes(row->room_bytes).s);
}

static void put_first(struct fact_fix *fixes, size_t *count, size_t fixes_max, struct fact_fix fix)
{
	if (*count == fixes_max)
		--*count;
	memmove(fixes + 1, fixes, *count * sizeof *fixes);
	fixes[0] = fix;
	++*count;
}

/* What was played and fits comes before what was not. */
static void move_first(struct fact_fix *fixes, size_t at)
{
	struct fact_fix fix = fixes[at];
	memmove(fixes + 1, fixes, at * sizeof *fixes);
	fixes[0] = fix;
}

void fixes_replay(const struct evidence *evidence, const char *id,
		  struct fact_fix *fixes, size_t *count, size_t fixes_max)
{
	const struct fact_what_ifs *played = &evidence->facts->what_ifs;
	const struct fact_what_if *row, *best;
	struct arena *arena = evidence->facts->arena;
	size_t kept = 0, confirmed = SIZE_MAX;
	if (!played->count || played->unlike || !evidence->incident ||
	    evidence->incident->id != played->incident)
		return;
	for (size_t i = 0; i < *count; i++) {
		row = row_of(played, &fixes[i]);
		if (row && !row->fits)
			continue;
		if (row)
			fixes[i].text = with_room(arena, fixes[i].text, row);
		if (row && confirmed == SIZE_MAX)
			confirmed = kept;
		fixes[kept++] = fixes[i];
	}
	*count = kept;
	if (strncmp(id, "S6", 2))
		return;
	/* what everybody advises about fragmentation, PyTorch included */
	row = row_named(played, "expandable-segments");
	best = best_setting(played);
	if (confirmed != SIZE_MAX)
		move_first(fixes, confirmed);
	else if (best)
		put_first(fixes, count, fixes_max,
			  (struct fact_fix){
				  .text = with_room(arena, arena_format(arena, "set %s",
									best->change), best),
				  .knob = best->knob,
				  .value = CUF_UNKNOWN,
				  .unit = "",
				  .by_bytes = evidence->metrics[METRIC_shortfall],
			  });
	if (row && !row->fits && *count)
		fixes[0].text =
			arena_format(arena, "%s; expandable_segments:True does not help"
				     " (replayed)", fixes[0].text);
}
