/* SPDX-License-Identifier: Apache-2.0 */
/* "Phases": what the processes did, and what one request takes. */
#include <math.h>
#include "analysis/base/units.h"
#include "analysis/view/text/sections.h"
#include "analysis/base/terminal.h"
#include "analysis/facts/kinds.h"

/*
 * What stays allocated is printed only of requests that were observed: begin and end of
 * inferred ones are too uncertain for that.
 */
static void print_requests(const struct text *text, const struct fact_process *process)
{
	const struct fact_requests *requests = &process->requests;
	char open[64] = "", kept[256] = "";
	if (!requests->count && !requests->open)
		return;
	if (requests->open)
		snprintf(open, sizeof open, ", %s unfinished", units_count(requests->open).s);
	if (isfinite(requests->floor_slope_bytes) && requests->basis == BASIS_OBSERVED)
		snprintf(kept, sizeof kept,
			 "; after each, %s stays allocated (95%% interval %s to %s)",
			 units_bytes_signed(requests->floor_slope_bytes).s,
			 units_bytes_signed(requests->floor_low_bytes).s,
			 units_bytes_signed(requests->floor_high_bytes).s);
	text_item(text, STYLE_PLAIN, "requests", "%s%s finished%s (%s: %s)",
		  text_if(requests->basis != BASIS_OBSERVED, "about "),
		  units_count(requests->count).s, open, basis_names[requests->basis],
		  requests->why);
	text_item(text, STYLE_PLAIN, "", "one takes %s at its peak, the largest %s%s",
		  units_bytes(requests->median_peak_bytes).s,
		  units_bytes(requests->largest_peak_bytes).s, kept);
}

/* Marks have no duration, and their row leaves those cells empty. */
static const char *source_of(const struct fact_phase_group *group)
{
	if (group->is_mark)
		return "moment";
	if (group->is_request)
		return "request";
	return phase_source_names[group->source];
}

static void print_table(const struct text *text, const struct fact_process *process)
{
	static const struct table_column columns[] = {
		{ "phase", TABLE_FLEX }, { "source", TABLE_LEFT },
		{ "times", TABLE_RIGHT }, { "open", TABLE_RIGHT },
		{ "total", TABLE_RIGHT }, { "peak", TABLE_RIGHT },
		{ "rise", TABLE_RIGHT },
	};
	struct table *table = table_new(text->style, columns, sizeof columns / sizeof *columns);
	size_t rows = text_rows(text);
	for (size_t i = 0; i < process->phase_group_count && i < rows; i++) {
		const struct fact_phase_group *group = &process->phase_groups[i];
		table_row(table, (const char *[]){
			group->name, source_of(group), units_count(group->count).s,
			text_if(group->open, units_count(group->open).s),
			text_if(!group->is_mark, units_duration(group->total_ns).s),
			units_bytes(group->peak_bytes).s,
			text_if(!group->is_mark, units_bytes(group->rise_bytes).s),
		});
	}
	table_print(table, text->out, 2);
	table_free(table);
	if (process->phase_group_count > rows)
		fprintf(text->out, "  and %zu more (--top=%zu)\n",
			process->phase_group_count - rows,
			process->phase_group_count);
}

/* How the phases that nobody marked were recognised. */
static void print_reasons(const struct text *text, const struct fact_process *process)
{
	const char *label = "inferred";
	for (size_t i = 0; i < process->phase_count; i++) {
		const struct fact_phase *phase = &process->phases[i];
		if (phase->source != PHASE_INFERRED)
			continue;
		text_item(text, STYLE_PLAIN, label, "%s: %s", phase->name, phase->why);
		label = "";
	}
}

/*
 * The title names the memory that the figures are of, GPU or host, because no table has room
 * for both.
 */
void section_phases(const struct text *text)
{
	const struct facts *facts = text->facts;
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *process = &facts->processes[i];
		if (!process->phase_group_count && !process->requests.count)
			continue;
		if (facts->process_count > 1)
			text_section(text, "Phases of pid %u (%s memory)", process->pid,
				     process->work_layer);
		else
			text_section(text, "Phases (%s memory)", process->work_layer);
		if (process->phase_group_count)
			print_table(text, process);
		print_reasons(text, process);
		print_requests(text, process);
		if (process->phases_left_out)
			text_item(text, STYLE_WARN, "dropped",
				  "%s marks: they came too fast or were nested too deep",
				  units_count(process->phases_left_out).s);
	}
}
