/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes did, by phase, and what one unit of their work takes. */
#include "analysis/view/text/text.h"

#include <math.h>
#include "analysis/base/units.h"
#include "analysis/view/text/table.h"

enum { PHASE_ROWS = 15 };

static void requests(const struct text *text, const struct fact_process *process)
{
	const struct fact_requests *r = &process->requests;
	char words[TEXT_LINE_BYTES], floor[160] = "";
	if (!r->count && !r->open)
		return;
	if (isfinite(r->floor_slope_bytes))
		snprintf(floor, sizeof floor, "; after each %s stays (95 %%: %s to %s)", units_bytes_signed(r->floor_slope_bytes).s,
			 units_bytes_signed(r->floor_low_bytes).s, units_bytes_signed(r->floor_high_bytes).s);
	snprintf(words, sizeof words, "%s finished%s%s%s (%s: %s); one takes %s at its peak, the largest %s%s", units_count(r->count).s,
		 r->open ? ", " : "", r->open ? units_count(r->open).s : "", r->open ? " open" : "", basis_names[r->basis], r->why,
		 units_bytes(r->median_peak_bytes).s, units_bytes(r->largest_peak_bytes).s, floor);
	text_flow(text, STYLE_PLAIN, "requests", 4, words);
}

static void rows(const struct text *text, const struct fact_process *process)
{
	static const struct table_column columns[] = {
		{ "phase", TABLE_FLEX }, { "source", TABLE_LEFT }, { "times", TABLE_RIGHT }, { "open", TABLE_RIGHT }, { "total", TABLE_RIGHT },
		{ "peak", TABLE_RIGHT }, { "rise", TABLE_RIGHT },
	};
	struct table *table = table_new(text->style, columns, 7);
	for (size_t i = 0; i < process->phase_group_count && i < PHASE_ROWS; i++) {
		const struct fact_phase_group *g = &process->phase_groups[i];
		table_row(table, (const char *[]){ g->name, g->is_mark ? "moment" : g->is_request ? "request" : phase_source_names[g->source], units_count(g->count).s,
			g->open ? units_count(g->open).s : "", g->is_mark ? "" : units_duration(g->total_ns).s,
			units_bytes(g->peak_bytes).s, g->is_mark ? "" : units_bytes(g->rise_bytes).s });
	}
	table_print(table, text->out, 2);
	table_free(table);
	if (process->phase_group_count > PHASE_ROWS)
		fprintf(text->out, "  and %zu more names; --json has all\n", process->phase_group_count - PHASE_ROWS);
}

static void inferred(const struct text *text, const struct fact_process *process)
{
	char words[TEXT_LINE_BYTES];
	const char *label = "inferred";
	for (size_t i = 0; i < process->phase_count; i++) {
		const struct fact_phase *f = &process->phases[i];
		if (f->source != PHASE_INFERRED)
			continue;
		snprintf(words, sizeof words, "%s: %s", f->name, f->why);
		text_flow(text, STYLE_PLAIN, label, 2, words);
		label = "";
	}
}

void text_phases(const struct text *text)
{
	const struct facts *facts = text->facts;
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *p = &facts->processes[i];
		if (!p->phase_group_count && !p->requests.count)
			continue;
		if (facts->process_count > 1)
			text_section(text, "PHASES of pid %u (bytes: live %s blocks)", p->pid, p->work_layer);
		else
			text_section(text, "PHASES (bytes: live %s blocks)", p->work_layer);
		if (p->phase_group_count)
			rows(text, p);
		inferred(text, p);
		requests(text, p);
		if (p->phases_left_out)
			text_line(text, STYLE_WARN, "left out", "%s beginnings, ends and marks came too fast or were nested too deep", units_count(p->phases_left_out).s);
	}
}
