/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen: 21 lines of 80 columns, so that the command, a note and the next prompt
 * fit on a terminal of 24 rows. Parts are printed to memory first; the table of holders
 * gets the lines that they leave. While those are too few, the parts are printed again,
 * tighter.
 */
#include "analysis/view/text/screen.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/focus.h"
#include "analysis/view/text/holders.h"

/* TABLE_LEAST: a title and five rows, where there are other processes to show */
enum { SCREEN_LINES = 21, TABLE_LINES = 9, TABLE_LEAST = 6, TIGHT_MAX = 3 };

#define WORTH_A_TABLE (32ull << 20)

enum part {
	PART_HEAD, PART_CAUSE, PART_TABLE, PART_PROCESSES, PART_FAILED, PART_NOTES, PART_MORE,
	PARTS
};

struct screen {
	char *parts[PARTS];
	unsigned lines[PARTS];
};

/* rows: how many lines a table may have. holders: of the table of holders only. */
static void print_part(const struct text *text, enum part part, unsigned tight, unsigned rows,
		       const struct holders *holders)
{
	switch (part) {
	case PART_HEAD:
		screen_head(text, tight);
		screen_group(text);
		break;
	case PART_CAUSE:
		screen_cause(text, tight);
		screen_also(text);
		break;
	case PART_TABLE: holders_print(text, holders, rows); break;
	case PART_PROCESSES: screen_processes(text, rows); break;
	case PART_FAILED: screen_failed(text); break;
	case PART_NOTES: screen_notes(text, tight); break;
	default: screen_more(text);
	}
}

/* Prints one part to memory and counts its lines. A part without memory for it is left out. */
static void render(const struct text *text, struct screen *screen, enum part part, unsigned tight,
		   unsigned rows, const struct holders *holders)
{
	struct text to = *text;
	size_t bytes;
	free(screen->parts[part]);
	screen->parts[part] = NULL;
	screen->lines[part] = 0;
	to.out = open_memstream(&screen->parts[part], &bytes);
	if (!to.out)
		return;
	print_part(&to, part, tight, rows, holders);
	fclose(to.out);
	for (size_t i = 0; i < bytes; i++)
		screen->lines[part] += screen->parts[part][i] == '\n';
}

/* The lines that the parts but the tables take, with a blank line between each and the next. */
static unsigned lines_without_table(const struct screen *screen)
{
	unsigned lines = 0;
	for (enum part part = 0; part < PARTS; part++)
		if (part != PART_TABLE && part != PART_PROCESSES && screen->lines[part])
			lines += screen->lines[part] + 1;
	return lines - 1;
}

/* A narrow terminal breaks lines: it gets more of them for the same words. */
static unsigned lines_of_screen(const struct text *text)
{
	unsigned columns = text->style->columns;
	if (columns >= STYLE_COLUMNS)
		return SCREEN_LINES;
	return SCREEN_LINES * STYLE_COLUMNS / columns + 3;
}

/*
 * Nothing went wrong, and there is too little to ask who held it: `true`, a script that
 * only imports.
 */
static bool is_idle(const struct facts *facts)
{
	const struct fact_process *process = focus_process(facts);
	return !facts->cause && !facts->fatal_incident && !facts->device_count &&
	       !process->host.at_peak && process->end != END_OOM_KILLED &&
	       (process->host.rss_bytes == CUF_UNKNOWN || process->host.rss_bytes < WORTH_A_TABLE);
}

/* The table is about the memory that ran out: page-locked, host or GPU memory. */
void screen_holders(const struct text *text, struct holders *holders)
{
	const struct fact_device *device = focus_device(text->facts);
	*holders = (struct holders){ 0 };
	if (is_idle(text->facts))
		return;
	if (focus_is_locked(text->facts))
		holders_of_locked(text, focus_process(text->facts), holders);
	else if (focus_is_host(text->facts))
		holders_of_host(text, focus_process(text->facts), holders);
	else if (device)
		holders_of_device(text, device, holders);
}

/* The table wants a title and eight rows; the tighter the parts already are, the fewer will do. */
static unsigned table_lines_wanted(const struct holders *holders, unsigned tight)
{
	unsigned all = (unsigned)holders->count + 1;
	if (all > TABLE_LINES - tight)
		return TABLE_LINES - tight;
	return all;
}

/*
 * At most as many as there are lines. The smallest rows share one, unless lines would stay empty
 * that show a hundredth of the whole.
 */
static unsigned table_rows(const struct holders *holders, unsigned lines)
{
	unsigned rows = TABLE_LINES - 1;
	while (rows < lines && rows < holders->count &&
	       holders->rows[rows - 1].bytes >= holders->total_bytes / 100)
		rows++;
	return (unsigned)least_of(rows, lines);
}

/*
 * Tightens until the table has the lines it needs. If even TIGHT_MAX leaves less than three,
 * there is no table: the cause and its fix are worth more.
 */
static void fit_parts(const struct text *text, struct screen *screen, const struct holders *holders)
{
	unsigned most = lines_of_screen(text), taken = most, rows, processes;
	for (unsigned tight = 0; tight <= TIGHT_MAX; tight++) {
		for (enum part part = 0; part < PARTS; part++)
			if (part != PART_TABLE && part != PART_PROCESSES)
				render(text, screen, part, tight, 0, NULL);
		taken = lines_without_table(screen) + 1; /* and a blank line */
		if (taken + table_lines_wanted(holders, tight) <= most)
			break;
	}
	if (text->options->full) { /* no screen, so no lines to save */
		rows = (unsigned)most_of(text_rows(text), TABLE_LINES - 1);
		render(text, screen, PART_TABLE, 0, rows, holders);
		render(text, screen, PART_PROCESSES, 0, SCREEN_LINES, NULL);
		return;
	}
	if (taken + 3 > most) /* a title and at least two rows */
		return;
	rows = table_rows(holders, most - taken - 1);
	/* the smallest holders say less than the other processes of the run */
	processes = screen_processes_least(text);
	if (processes && most >= taken + TABLE_LEAST + 1 + processes &&
	    most - taken - 2 - processes < rows)
		rows = most - taken - 2 - processes;
	render(text, screen, PART_TABLE, 0, rows, holders);
	taken += screen->lines[PART_TABLE] + 1;
	if (taken < most)
		render(text, screen, PART_PROCESSES, 0, most - taken, NULL);
}

void screen_print(const struct text *text)
{
	struct screen screen = { 0 };
	struct holders holders;
	bool first = true;
	screen_holders(text, &holders);
	fit_parts(text, &screen, &holders);
	for (enum part part = 0; part < PARTS; part++) {
		if (!screen.lines[part])
			continue;
		if (!first)
			fputc('\n', text->out);
		fputs(screen.parts[part], text->out);
		first = false;
	}
	for (enum part part = 0; part < PARTS; part++)
		free(screen.parts[part]);
	holders_free(&holders);
}
