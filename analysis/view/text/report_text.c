/* SPDX-License-Identifier: Apache-2.0 */
/* The text report: the first screen, then the sections in the order in which questions come up. */
#include "analysis/view/report.h"

#include "analysis/view/text/text.h"

void report_text(FILE *out, const struct facts *facts, struct frames *frames, const struct style *style)
{
	static void (*const parts[])(const struct text *) = {
		text_screen, text_cause, text_incidents, text_phases, text_sites, text_fragmentation, text_host, text_processes, text_coverage,
	};
	const struct text text = { out, facts, frames, style };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		parts[i](&text);
}
