/* SPDX-License-Identifier: Apache-2.0 */
/* "Processes" of the run, and "What could not be seen". */
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/view/text/screen.h"
#include "analysis/view/text/sections.h"
#include "analysis/view/text/table.h"

enum { DEPTH_MAX = 8 };

/* How deep below the first recorded ancestor. */
static unsigned depth_of(const struct facts *facts, const struct fact_process *process)
{
	unsigned depth = 0;
	for (uint32_t up = process->parent; up != FACT_NONE &&
		depth < DEPTH_MAX; up = facts->processes[up].parent)
		depth++;
	return depth;
}

/* Shorter than text_ending: "exit 1". */
static void short_ending(const struct fact_process *process, char *out, size_t bytes)
{
	static const char *const words[END_MAX] = {
		[END_RUNNING] = "running",
		[END_EXIT] = "exit",
		[END_SIGNAL] = "signal",
		[END_KILLED] = "killed",
		[END_OOM_KILLED] = "OOM-killed",
		[END_EXEC] = "exec",
	};
	if (process->end == END_EXIT || process->end == END_SIGNAL)
		snprintf(out, bytes, "%s %s", words[process->end],
			 units_count(process->end_status).s);
	else
		snprintf(out, bytes, "%s", words[process->end]);
}

/*
 * The process that failed first is the answer in a run of many: it is highlighted. A process
 * whose recording is incomplete is highlighted less.
 */
static void add_process(const struct text *text, struct table *table,
			const struct fact_process *process)
{
	const struct facts *facts = text->facts;
	bool leads = facts->group.leader < facts->process_count &&
		     process == &facts->processes[facts->group.leader] &&
		     facts->process_count > 1;
	const char *command = process->cmdline;
	char pid[48], end[160], ending[96];

	short_ending(process, ending, sizeof ending);
	snprintf(pid, sizeof pid, "%*s%u", (int)(2 * depth_of(facts, process)), "", process->pid);
	snprintf(end, sizeof end, "%s%s%s", ending, text_if(leads, ", failed first"),
		 text_if(process->ended_by != FACT_NONE, ", because of that"));
	if (!*command)
		command = process->exe;
	table_row(table, (const char *[]){
		pid, process->rank, units_wall(process->start_ns).s, end,
		text_if(process->held_bytes != CUF_UNKNOWN, units_bytes(process->held_bytes).s),
		text_if(process->host.rss_peak_bytes != CUF_UNKNOWN,
			units_bytes(process->host.rss_peak_bytes).s),
		command,
	});
	if (leads)
		table_tone(table, STYLE_BAD);
	else if (process->switched_off || !process->complete)
		table_tone(table, STYLE_WARN);
}

void section_processes(const struct text *text)
{
	static const struct table_column columns[] = {
		{ "pid", TABLE_LEFT }, { "rank", TABLE_RIGHT }, { "started", TABLE_LEFT },
		{ "end", TABLE_LEFT }, { "GPU", TABLE_RIGHT },
		{ "host peak", TABLE_RIGHT }, { "command", TABLE_FLEX },
	};
	const struct facts *facts = text->facts;
	struct table *table = table_new(text->style, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < facts->process_count; i++)
		add_process(text, table, &facts->processes[i]);
	text_section(text, "Processes (%zu)", facts->process_count);
	screen_processes(text);
	table_print(table, text->out, 2);
	table_free(table);
}

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
