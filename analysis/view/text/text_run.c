/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the run, and what the recorder saw and did not see. */
#include "analysis/view/text/text.h"

#include <string.h>
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

/* "rank 3 (pid 4711)", or the pid alone. */
static const char *name_process(const struct fact_process *p, char *out, size_t bytes)
{
	if (p->rank)
		snprintf(out, bytes, "rank %s (pid %u)", p->rank, p->pid);
	else
		snprintf(out, bytes, "pid %u", p->pid);
	return out;
}

unsigned text_crowd(const struct text *text, unsigned lines)
{
	const struct facts *facts = text->facts;
	const struct fact_process_group *c = &facts->group;
	char name[96], first[160] = "", ended[96] = "", outlier[320] = "", words[TEXT_LINE_BYTES];
	if (facts->process_count < 2 || (c->leader == FACT_NONE && c->outlier == FACT_NONE))
		return 0;
	if (c->leader != FACT_NONE)
		snprintf(first, sizeof first, "%s failed first%s", name_process(&facts->processes[c->leader], name, sizeof name),
			 c->failed_count > 1 ? ", others after it" : "");
	if (c->ended_count)
		snprintf(ended, sizeof ended, "; %s other%s ended because of it", units_count(c->ended_count).s, c->ended_count == 1 ? "" : "s");
	if (c->outlier != FACT_NONE)
		snprintf(outlier, sizeof outlier, "%s%s held %s, the middle of %s such processes %s", *first ? "; " : "",
			 c->outlier == c->leader ? "it" : name_process(&facts->processes[c->outlier], name, sizeof name),
			 units_bytes(facts->processes[c->outlier].held_bytes).s, units_count(c->peer_count).s, units_bytes(c->median_bytes).s);
	snprintf(words, sizeof words, "%zu processes: %s%s%s", facts->process_count, first, ended, outlier);
	return text_flow(text, STYLE_HEAD, "RUN", lines, words);
}

/* How deep below the first recorded ancestor. */
static unsigned depth_of(const struct facts *facts, const struct fact_process *p)
{
	unsigned depth = 0;
	for (uint32_t up = p->parent; up != FACT_NONE && depth < 8; up = facts->processes[up].parent)
		depth++;
	return depth;
}

void text_processes(const struct text *text)
{
	static const struct table_column columns[] = {
		{ "pid", TABLE_LEFT }, { "rank", TABLE_RIGHT }, { "started", TABLE_LEFT }, { "end", TABLE_LEFT }, { "GPU held", TABLE_RIGHT }, { "events", TABLE_RIGHT },
		{ "lost", TABLE_RIGHT }, { "command", TABLE_FLEX },
	};
	const struct facts *facts = text->facts;
	struct table *table = table_new(text->style, columns, 8);
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *p = &facts->processes[i];
		char pid[48], end[64];
		snprintf(pid, sizeof pid, "%*s%u", (int)(2 * depth_of(facts, p)), "", p->pid);
		snprintf(end, sizeof end, p->end == END_EXIT || p->end == END_SIGNAL ? "%s %s%s" : "%s%s%s", end_names[p->end],
			 p->end == END_EXIT || p->end == END_SIGNAL ? units_count(p->end_status).s : "", p->ended_by == FACT_NONE ? "" : ", by the first failure");
		table_row(table, (const char *[]){ pid, p->rank ? p->rank : "", units_wall(p->start_ns).s, end,
			p->held_bytes == CUF_UNKNOWN ? "" : units_bytes(p->held_bytes).s, units_count(p->events_recorded).s, units_count(p->events_lost).s,
			*p->cmdline ? p->cmdline : p->exe });
		if (p->switched_off || !p->complete)
			table_tone(table, STYLE_WARN);
		if ((uint32_t)i == facts->group.leader && facts->process_count > 1)
			table_tone(table, STYLE_BAD);
	}
	text_section(text, "PROCESSES (%zu)", facts->process_count);
	text_crowd(text, 4);
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
