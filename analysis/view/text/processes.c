/* SPDX-License-Identifier: Apache-2.0 */
/* A run of several processes: one sentence that relates them, and one row each. */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/screen.h"
#include "analysis/view/text/sections.h"
#include "analysis/base/terminal.h"

enum { WORDS = 512, DEPTH_MAX = 8 };

/* ---- the sentence ---- */

/* Ranks are what users of several processes know them by. */
static const char *process_name(const struct fact_process *process, char *out, size_t bytes)
{
	if (process->rank)
		snprintf(out, bytes, "rank %.16s (pid %u)", process->rank, process->pid);
	else
		snprintf(out, bytes, "pid %u", process->pid);
	return out;
}

/*
 * "8 processes: rank 3 (pid 91) failed first, others after it." Only if there is something to
 * report of the group.
 */
void screen_group(const struct text *text)
{
	const struct facts *facts = text->facts;
	const struct fact_process_group *crowd = &facts->group;
	char name[96], words[WORDS] = "";

	if (facts->process_count < 2 || (crowd->leader == FACT_NONE && crowd->outlier == FACT_NONE))
		return;
	text_append(words, sizeof words, "%zu processes: ", facts->process_count);
	if (crowd->leader != FACT_NONE)
		text_append(words, sizeof words, "%s failed first%s",
		       process_name(&facts->processes[crowd->leader], name, sizeof name),
		       text_if(crowd->failed_count > 1, ", others after it"));
	if (crowd->ended_count)
		text_append(words, sizeof words, "; %s other%s ended because of it",
		       units_count(crowd->ended_count).s, text_s(crowd->ended_count));
	if (crowd->outlier != FACT_NONE) {
		const struct fact_process *outlier = &facts->processes[crowd->outlier];
		const char *who = "it", *peers = "processes";
		if (crowd->outlier != crowd->leader)
			who = process_name(outlier, name, sizeof name);
		if (outlier->rank)
			peers = "ranks";
		text_append(words, sizeof words, "%s%s held %s (median of %s %s: %s)",
		       text_if(crowd->leader != FACT_NONE, "; "), who,
		       units_bytes(outlier->held_bytes).s, units_count(crowd->peer_count).s, peers,
		       units_bytes(crowd->median_bytes).s);
	}
	text_append(words, sizeof words, ".");
	text_words(text, STYLE_PLAIN, "", 0, 2, words);
}

/* ---- the rows ---- */

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
		[END_UNKNOWN] = "may still run",
	};
	if (process->end == END_EXIT || process->end == END_SIGNAL)
		snprintf(out, bytes, "%s %s", words[process->end],
			 units_count(process->end_status).s);
	else
		snprintf(out, bytes, "%s", words[process->end]);
}

/* The program as one would type it, and its arguments: the path of an interpreter is no help. */
static void command_of(const struct fact_process *process, char *out, size_t bytes)
{
	char program[96];
	const char *arguments = NULL;

	text_program(process, program, sizeof program);
	if (*program)
		arguments = strstr(process->cmdline, program);
	if (arguments)
		arguments = strchr(arguments, ' ');
	snprintf(out, bytes, "%s%s", program, text_if(arguments != NULL, arguments));
}

static bool leads(const struct facts *facts, const struct fact_process *process)
{
	return facts->group.leader < facts->process_count && facts->process_count > 1 &&
	       process == &facts->processes[facts->group.leader];
}

/*
 * The process that failed first is the answer in a run of many: it is highlighted. A process
 * whose recording is incomplete is highlighted less.
 */
static void add_process_line(const struct text *text, struct table *table,
			     const struct fact_process *process)
{
	const struct facts *facts = text->facts;
	char pid[48], end[160], ending[96], command[256];

	short_ending(process, ending, sizeof ending);
	command_of(process, command, sizeof command);
	snprintf(pid, sizeof pid, "%*s%u", (int)(2 * depth_of(facts, process)), "", process->pid);
	snprintf(end, sizeof end, "%s%s%s", ending,
		 text_if(leads(facts, process), ", failed first"),
		 text_if(process->ended_by != FACT_NONE, ", because of that"));
	table_row(table, (const char *[]){
		pid, process->rank, units_wall(process->start_ns).s, end,
		text_if(process->device_peak_bytes != CUF_UNKNOWN,
			units_bytes(process->device_peak_bytes).s),
		text_if(process->host.rss_peak_bytes != CUF_UNKNOWN,
			units_bytes(process->host.rss_peak_bytes).s),
		command,
	});
	if (leads(facts, process))
		table_tone(table, STYLE_BAD);
	else if (process->switched_off || !process->complete)
		table_tone(table, STYLE_WARN);
}

/* ---- which rows ---- */

/* A run has helpers: shells, launchers, resource trackers. Who holds less than this and ended well
 * is not worth a line of the first screen. */
#define WORTH_A_ROW (32ull << 20)

/* How much a reader wants to see this one: what failed, then what held memory. */
static uint64_t worth_of(const struct text *text, const struct fact_process *process)
{
	const struct facts *facts = text->facts;
	uint64_t held = known_or_zero(process->device_peak_bytes) +
			known_or_zero(process->host.rss_peak_bytes);

	if (process == focus_process(facts) || leads(facts, process))
		return CUF_UNKNOWN;
	if (process->fatal_incident || process->end == END_OOM_KILLED ||
	    process->end == END_KILLED || process->end == END_SIGNAL)
		return CUF_UNKNOWN - 1;
	return held;
}

struct row {
	uint64_t worth;
	size_t process;
};

/* Most worth first; of equal ones the first of the run. */
static int by_worth(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = compare_numbers(y->worth, x->worth);

	return order ? order : compare_numbers(x->process, y->process);
}

static int by_process(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare_numbers(x->process, y->process);
}

/* All processes, most worth first; the caller frees it. */
static struct row *rank_processes(const struct text *text)
{
	size_t count = text->facts->process_count;
	struct row *rows = xalloc_zeroed(count, sizeof *rows);

	for (size_t i = 0; i < count; i++)
		rows[i] = (struct row){ worth_of(text, &text->facts->processes[i]), i };
	qsort(rows, count, sizeof *rows, by_worth);
	return rows;
}

/* The first `count` of the rows, in the order of the run. */
static void print_rows(const struct text *text, struct row *rows, size_t count)
{
	static const struct table_column columns[] = {
		{ "pid", TABLE_LEFT }, { "rank", TABLE_RIGHT_IF_ANY }, { "started", TABLE_LEFT },
		{ "end", TABLE_LEFT }, { "GPU peak", TABLE_RIGHT_IF_ANY },
		{ "host peak", TABLE_RIGHT_IF_ANY }, { "program", TABLE_FLEX },
	};
	struct table *table = table_new(text->style, columns, sizeof columns / sizeof *columns);

	qsort(rows, count, sizeof *rows, by_process);
	for (size_t i = 0; i < count; i++)
		add_process_line(text, table, &text->facts->processes[rows[i].process]);
	table_print(table, text->out, 2);
	table_free(table);
}

void section_processes(const struct text *text)
{
	size_t count = text->facts->process_count, shown = least_of(count, text_rows(text));
	struct row *rows = rank_processes(text);

	text_section(text, "Processes (%zu)", count);
	screen_group(text);
	print_rows(text, rows, shown);
	if (shown < count)
		fprintf(text->out, "  and %zu more (--top=%zu)\n", count - shown, count);
	free(rows);
}

enum { OTHER_LINES = 3 /* a title, the names of the columns, and how many are left out */ };

static size_t count_worth(const struct row *rows, size_t count)
{
	size_t worth = 0;

	while (worth < count && rows[worth].worth >= WORTH_A_ROW)
		worth++;
	return worth;
}

unsigned screen_processes_least(const struct text *text)
{
	struct row *rows = rank_processes(text);
	size_t worth = count_worth(rows, text->facts->process_count);

	free(rows);
	return worth >= 2 ? OTHER_LINES + (unsigned)least_of(worth, 3) : 0;
}

void screen_processes(const struct text *text, unsigned lines)
{
	size_t count = text->facts->process_count;
	struct row *rows = rank_processes(text);
	size_t shown = count_worth(rows, count);

	if (shown >= 2 && lines >= OTHER_LINES + 2) {
		shown = least_of(shown, lines - OTHER_LINES);
		fprintf(text->out, "Processes of this run\n");
		print_rows(text, rows, shown);
		if (shown < count)
			fprintf(text->out, "  and %zu more\n", count - shown);
	}
	free(rows);
}
