/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text report: the first screen, and on request the sections, in the order in which
 * questions come up.
 */
#include "analysis/view/text/report_text.h"

#include "analysis/view/text/screen.h"
#include "analysis/view/text/sections.h"

void report_text(FILE *out, const struct facts *facts, struct frames *frames,
		 const struct style *style, const struct report_text_options *options)
{
	static void (*const sections[])(const struct text *) = {
		section_why, section_call_sites, section_phases, section_failures,
		section_fragmentation, section_host, section_processes, section_coverage,
	};
	static const struct report_text_options defaults;
	const struct text text = {
		.out = out, .facts = facts, .frames = frames, .style = style,
		.places = places_new(facts, frames), .options = options ? options : &defaults,
	};
	screen_print(&text);
	for (size_t i = 0; text.options->full && i < sizeof sections / sizeof *sections; i++)
		sections[i](&text);
	places_free(text.places);
}
