/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Failed requests": those of one call site and one outcome are one entry, with the stack
 * of the last.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/text/sections.h"

struct group {
	const struct fact_incident *first, *last;
	struct place place;
	size_t count;
	uint64_t least_bytes, most_bytes; /* requested; CUF_UNKNOWN */
};

struct groups { struct group *items; size_t count, room; };

/* The range of sizes that one entry covers. Calls without a size do not widen it. */
static void widen(struct group *group, uint64_t bytes)
{
	if (bytes == CUF_UNKNOWN)
		return;
	if (group->least_bytes == CUF_UNKNOWN || bytes < group->least_bytes)
		group->least_bytes = bytes;
	if (group->most_bytes == CUF_UNKNOWN || bytes > group->most_bytes)
		group->most_bytes = bytes;
}

/*
 * A retry loop fails thousands of times at one place. Its failures are one entry, which the
 * outcome, process and kind keep apart from others.
 */
static void add_incident(const struct text *text, struct groups *groups,
			 const struct fact_incident *incident)
{
	struct group *group = NULL;
	struct place place;
	place_of(text->places, &incident->stack, &place);
	for (size_t i = 0; i < groups->count && !group; i++) {
		const struct fact_incident *first = groups->items[i].first;
		if (first->outcome == incident->outcome && first->process == incident->process &&
		    first->kind == incident->kind && place_is_same(&groups->items[i].place, &place))
			group = &groups->items[i];
	}
	if (!group) {
		xalloc_grow(&groups->items, groups->count, &groups->room, sizeof *groups->items);
		group = &groups->items[groups->count++];
		*group = (struct group){ .first = incident, .place = place,
					 .least_bytes = CUF_UNKNOWN, .most_bytes = CUF_UNKNOWN };
	}
	group->last = incident;
	group->count++;
	widen(group, text_wanted_bytes(incident));
}

/* Largest free range by layer: which of them a request could use depends on who asks. */
static void print_largest(const struct text *text, const struct fact_layer *layers)
{
	static const char *const names[LAYER_MAX] = {
		[LAYER_SEGMENT] = "in a PyTorch segment", [LAYER_PAGE] = "in a 2 MiB page",
		[LAYER_POOL] = "in a CUDA memory pool", [LAYER_VMM] = "of reserved addresses",
		[LAYER_MEASURED] = "by probing the driver",
	};
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < LAYER_MAX && used + 96 < sizeof words; i++)
		if (names[i] && layers[i].bytes != CUF_UNKNOWN)
			used += (size_t)snprintf(words + used, sizeof words - used, "%s%s %s",
						 text_if(used, ", "),
						 units_bytes(layers[i].bytes).s, names[i]);
	if (used)
		text_item(text, STYLE_PLAIN, "largest gaps", "%s", words);
}

/*
 * Separates fragmentation from shortage: if all free memory in one piece would not have been
 * enough, gaps are not the reason.
 */
static void print_packed(const struct text *text, const struct fact_incident *incident)
{
	if (!incident->is_request || incident->packed_bytes == CUF_UNKNOWN)
		return;
	if (incident->fits_if_packed == FACT_YES)
		text_item(text, STYLE_PLAIN, "packed",
			  "all free memory together is %s: enough for the request",
			  units_bytes(incident->packed_bytes).s);
	else if (incident->fits_if_packed == FACT_NO)
		text_item(text, STYLE_PLAIN, "packed",
			  "all free memory together is %s: not enough, so this is not "
			  "fragmentation",
			  units_bytes(incident->packed_bytes).s);
}

/* What the program was doing: its phase and the request, where either is known. */
static void print_phase(const struct text *text, const struct fact_incident *incident)
{
	char phase[TEXT_LINE_BYTES / 4] = "", request[TEXT_LINE_BYTES / 4] = "";
	if (incident->phase)
		snprintf(phase, sizeof phase, "%s%s", incident->phase,
			 text_if(incident->phase_basis == BASIS_INFERRED, " (inferred)"));
	if (incident->request_phase)
		snprintf(request, sizeof request, "%srequest %s (%s)", text_if(*phase, ", "),
			 units_count(incident->request_id).s, incident->request_phase);
	if (*phase || *request)
		text_item(text, STYLE_PLAIN, "phase", "%s%s", phase, request);
}

/* The details are of the last failure, which is the one that a fatal outcome is about. */
static void print_group(const struct text *text, const struct group *group)
{
	static const char *const outcomes[OUTCOME_MAX] = {
		[OUTCOME_FATAL] = "fatal", [OUTCOME_RECOVERED] = "succeeded on retry",
		[OUTCOME_HANDLED] = "handled by the program", [OUTCOME_UNKNOWN] = "outcome unknown",
	};
	static const enum style_tone tones[OUTCOME_MAX] = {
		[OUTCOME_FATAL] = STYLE_BAD, [OUTCOME_RECOVERED] = STYLE_GOOD,
		[OUTCOME_HANDLED] = STYLE_WARN, [OUTCOME_UNKNOWN] = STYLE_WARN,
	};
	const struct fact_incident *last = group->last;
	char call[160], head[TEXT_LINE_BYTES], where[256], room[128];

	place_text(&group->place, where, sizeof where);
	text_requested(last, call, sizeof call);
	if (group->count == 1)
		snprintf(head, sizeof head, "%s in %s at %s, pid %u",
			 call, where, units_wall(last->time_ns).s, last->pid);
	else if (group->least_bytes != group->most_bytes)
		snprintf(head, sizeof head, "%zu failures in %s from %s on, of %s to %s, pid %u",
			 group->count, where, units_wall(group->first->time_ns).s,
			 units_bytes(group->least_bytes).s, units_bytes(group->most_bytes).s,
			 last->pid);
	else
		snprintf(head, sizeof head, "%zu failures in %s from %s on, the last %s, pid %u",
			 group->count, where, units_wall(group->first->time_ns).s, call,
			 last->pid);
	text_words(text, tones[last->outcome], "-", 2, TEXT_NO_LIMIT, head);
	if (last->outcome_why && *last->outcome_why)
		text_item(text, STYLE_PLAIN, "outcome", "%s: %s", outcomes[last->outcome],
			  last->outcome_why);
	else
		text_item(text, STYLE_PLAIN, "outcome", "%s", outcomes[last->outcome]);
	if (last->free_bytes != CUF_UNKNOWN)
		text_item(text, STYLE_PLAIN, "free then", "%s of %s",
			  units_bytes(last->free_bytes).s, units_bytes(last->total_bytes).s);
	text_room(last, room, sizeof room);
	if (*room)
		text_item(text, STYLE_PLAIN, "failed", "%s", room + 1);
	if (last->attempt_count > 1)
		text_item(text, STYLE_PLAIN, "attempts", "%s", units_count(last->attempt_count).s);
	print_phase(text, last);
	print_packed(text, last);
	print_largest(text, last->largest_free);
	text_stack(text, &last->stack, TEXT_LABEL);
}

void section_failures(const struct text *text)
{
	const struct facts *facts = text->facts;
	struct groups groups = { 0 };
	size_t rows = text_rows(text), first = 0;
	if (!facts->incident_count)
		return;
	for (size_t i = 0; i < facts->incident_count; i++)
		add_incident(text, &groups, &facts->incidents[i]);
	text_section(text, "Failed requests (%zu)", facts->incident_count);
	if (groups.count > rows)
		first = groups.count - rows; /* the latest are the ones that matter */
	for (size_t i = first; i < groups.count; i++)
		print_group(text, &groups.items[i]);
	if (groups.count > rows)
		fprintf(text->out, "  and %zu earlier kinds of failure (--top=%zu)\n",
			groups.count - rows, groups.count);
	free(groups.items);
}
