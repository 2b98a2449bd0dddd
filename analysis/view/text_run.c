/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the run, and what the recorder saw and did not see. */
#include "analysis/view/text.h"

#include <string.h>
#include "analysis/view/table.h"
#include "analysis/view/units.h"

void text_processes(const struct text *text)
{
	static const struct table_column columns[] = {
		{ "pid", TABLE_RIGHT }, { "parent", TABLE_RIGHT }, { "started", TABLE_LEFT }, { "end", TABLE_LEFT }, { "events", TABLE_RIGHT }, { "lost", TABLE_RIGHT }, { "command", TABLE_FLEX },
	};
	const struct facts *facts = text->facts;
	struct table *table = table_new(text->style, columns, 7);
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *p = &facts->processes[i];
		char pid[16], parent[16], end[48];
		snprintf(pid, sizeof pid, "%u", p->pid);
		snprintf(parent, sizeof parent, "%u", p->ppid);
		snprintf(end, sizeof end, p->end == END_EXIT || p->end == END_SIGNAL ? "%s %s" : "%s", end_names[p->end], units_count(p->end_status).s);
		table_row(table, (const char *[]){ pid, parent, units_date(p->start_ns).s, end, units_count(p->events_recorded).s, units_count(p->events_lost).s,
			*p->cmdline ? p->cmdline : p->exe });
		if (p->switched_off || !p->complete)
			table_tone(table, STYLE_WARN);
	}
	text_section(text, "PROCESSES (%zu)", facts->process_count);
	table_print(table, text->out, 2);
	table_free(table);
}

static void list(const struct text *text, const char *label, const char *const *names, size_t count)
{
	char words[TEXT_LINE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < count && used < sizeof words; i++) {
		int length = snprintf(words + used, sizeof words - used, "%s%s", used ? ", " : "", names[i]);
		used += length > 0 ? (size_t)length : 0;
	}
	if (count)
		text_flow(text, STYLE_PLAIN, label, 6, words);
}

void text_coverage(const struct text *text)
{
	const struct fact_coverage *c = &text->facts->coverage;
	text_section(text, "COVERAGE");
	list(text, "called", c->hooked, c->hooked_count);
	list(text, "unhooked", c->unhooked, c->unhooked_count);
	list(text, "static", c->static_cudart, c->static_cudart_count);
	for (size_t i = 0; i < c->lost_count; i++)
		text_line(text, STYLE_WARN, i ? "" : "lost", "%s: %s", c->lost[i].what, units_count(c->lost[i].count).s);
	for (size_t i = 0; i < c->blind_count; i++)
		text_flow(text, STYLE_WARN, i ? "" : "blind", 4, c->blind[i].text);
	text_line(text, STYLE_PLAIN, "frees", "%s of addresses unknown to the recorder, %s refused; %s allocations over a live address",
		  units_count(c->unknown_frees).s, units_count(c->undone_frees).s, units_count(c->replaced).s);
	text_line(text, STYLE_PLAIN, "cost", "%s of CPU time in the recorder's device paths", units_duration(c->recorder_ns).s);
}
