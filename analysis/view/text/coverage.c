/* SPDX-License-Identifier: Apache-2.0 */
/* "What could not be seen". */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/view/text/sections.h"

/* Names joined by commas. The list is cut where the buffer ends. */
static void print_list(const struct text *text, const char *label, const char *const *names,
		       size_t count)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < count && used + 1 < sizeof words; i++) {
		int length = snprintf(words + used, sizeof words - used, "%s%s",
				      text_if(used, ", "), names[i]);
		if (length > 0)
			used += (size_t)length;
	}
	if (count)
		text_item(text, STYLE_PLAIN, label, "%s", words);
}

/* Counts that show whether the recording can be trusted, for -v. */
static void print_details(const struct text *text, const struct fact_coverage *coverage)
{
	print_list(text, "recorded", coverage->hooked, coverage->hooked_count);
	text_item(text, STYLE_PLAIN, "frees",
		  "%s of unknown addresses, %s that the driver refused; "
		  "%s allocations at an address that was in use",
		  units_count(coverage->unknown_frees).s, units_count(coverage->undone_frees).s,
		  units_count(coverage->replaced).s);
	text_item(text, STYLE_PLAIN, "cost", "%s of CPU time for recording GPU events",
		  units_duration(coverage->recorder_ns).s);
}

/*
 * Everything that could make the report wrong. Gaps that have no bearing on it are printed
 * with -v only.
 */
void section_coverage(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_coverage *coverage = &facts->coverage;
	size_t printed = 0;

	text_section(text, "What could not be seen");
	if (facts->events_overwritten || facts->events_lost)
		text_item(text, STYLE_WARN, "events",
			  "%s recorded, %s of them overwritten by later ones, %s dropped",
			  units_count(facts->events_recorded).s,
			  units_count(facts->events_overwritten).s,
			  units_count(facts->events_lost).s);
	print_list(text, "not recorded", coverage->unhooked, coverage->unhooked_count);
	print_list(text, "static cudart", coverage->static_cudart, coverage->static_cudart_count);
	for (size_t i = 0; i < coverage->lost_count; i++)
		text_item(text, STYLE_WARN, text_label("dropped", i), "%s: %s",
			  coverage->lost[i].what, units_count(coverage->lost[i].count).s);
	for (size_t i = 0; i < coverage->blind_count; i++) {
		if (coverage->blind[i].minor && !text->options->verbose)
			continue;
		text_item(text, STYLE_WARN, text_label("unknown", printed++), "%s",
			  coverage->blind[i].text);
	}
	if (coverage->complete && !printed && !coverage->unhooked_count)
		fputs("  nothing that bears on this report (-v prints every detail)\n", text->out);
	if (text->options->verbose)
		print_details(text, coverage);
}
