/* SPDX-License-Identifier: Apache-2.0 */
/* The help, and the stack of a row: lines that can be scrolled. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/cmd/top/curses_text.h"

/* Draws a line if the screen shows it. */
struct page { struct drawing *drawing; size_t skip, count; };

static void put_line(struct page *page, enum tone tone, const char *line)
{
	struct drawing *drawing = page->drawing;

	if (page->count++ < page->skip || drawing->y >= drawing->lines - 1)
		return;
	draw_text(drawing, drawing->y++, 0, drawing->columns, tone, line);
}

/* The last line stays in sight. */
static void end_page(const struct page *page, struct state *state)
{
	if (state->scrolled >= page->count)
		state->scrolled = page->count ? page->count - 1 : 0;
}

void draw_help(struct drawing *drawing, struct state *state)
{
	static const char *const lines[] = {
		"b r a n     sort by bytes, rate, age of the oldest block, name",
		"/           show only call sites that have a text, in any column; Esc: all",
		"g           only one GPU, the next one, all",
		"m           a row for each process and device, or merged (also ranks)",
		"Enter       the stack of a row, and which processes have it",
		"s           snapshot: a pack of the row's recording and its report, here",
		"p, space    pause: recording and analysis go on",
		"arrows, j k PgUp PgDn Home End",
		"q           quit",
		"",
		"BYTES       live now, of all processes that run    SHARE  of the GPU; on the",
		"            host: of what its processes have resident",
		"RATE        how fast it rises, as the last analysis saw it; empty: it does not",
		"AGE         of the oldest block that is still live",
		"STATE       warming: rises, too early to tell   filling: rises, ever slower",
		"            growing: keeps its pace             leak: also never freed",
		"MEMORY      GPU/fw: inside what a framework has reserved on a GPU",
		"FAIL        requests that were refused",
		"w weights  k kv  c compute  o output  l library  n communication  g graph",
		"x other  p page rounding  s pool slack  f framework slack  d driver's context",
		"t other processes  u unexplained  . free",
	};
	struct page page = { drawing, state->scrolled, 0 };

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		put_line(&page, TONE_PLAIN, lines[i]);
	end_page(&page, state);
}

/* ---- a stack ---- */

static void put_path(struct page *page, const char *path)
{
	static const char between[] = " < ";
	char line[PASS_SENTENCE + 8];

	if (!*path)
		put_line(page, TONE_DIM, "  the memory of a runtime: it has no stack of its own");
	while (*path) {
		const char *end = strstr(path, between);
		size_t length = end ? (size_t)(end - path) : strlen(path);

		snprintf(line, sizeof line, "  %.*s", (int)length, path);
		put_line(page, TONE_PLAIN, line);
		path += end ? length + strlen(between) : length;
	}
}

static void put_facts(struct page *page, const struct site_row *row)
{
	char line[400], rate[48];

	site_rate(row, rate, sizeof rate);
	snprintf(line, sizeof line, "%s in %s block%s, %s of %s; oldest %s; %s%s%s%s",
		 units_bytes(row->bytes).s, units_count(row->count).s,
		 row->count == 1 ? "" : "s", units_percent(row->bytes, row->whole_bytes).s,
		 units_bytes(row->whole_bytes).s,
		 isnan(row->age_s) ? "?" : units_duration((uint64_t)(row->age_s * 1e9)).s,
		 row->is_judged ? live_state_names[row->state] : "not judged: small",
		 *rate ? " " : "", rate, "");
	put_line(page, TONE_PLAIN, line);
	snprintf(line, sizeof line, "memory: %s%s%s", watch_memory_names[row->site->memory],
		 *row->site->role ? "; role: " : "", row->site->role);
	put_line(page, TONE_PLAIN, line);
}

static void put_processes(struct page *page, const struct state *state,
			  const struct site_row *row)
{
	struct rows_options options = { .is_split = true, .gpu = ROWS_ALL_GPUS };
	struct site_row *rows;
	char line[400], rate[48];
	size_t count;

	rows = rows_of_sites(&state->frame, &options, &count);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].site->memory != row->site->memory ||
		    strcmp(rows[i].site->name, row->site->name) != 0)
			continue;
		site_rate(&rows[i], rate, sizeof rate);
		snprintf(line, sizeof line, "  %10s  %12s  %s (pid %u)  %s",
			 units_bytes(rows[i].bytes).s, rate, rows[i].process->name,
			 rows[i].process->pid, rows[i].process->recording);
		put_line(page, TONE_PLAIN, line);
	}
	free(rows);
}

void draw_stack(struct drawing *drawing, struct state *state)
{
	const struct site_row *row = state_selected(state);
	struct page page = { drawing, state->scrolled, 0 };

	if (!row)
		return;
	put_line(&page, TONE_HEAD, row->site->name);
	put_facts(&page, row);
	put_line(&page, TONE_PLAIN, "");
	put_line(&page, TONE_HEAD, "STACK, innermost first");
	put_path(&page, row->site->path);
	put_line(&page, TONE_PLAIN, "");
	put_line(&page, TONE_HEAD, "PROCESSES");
	put_processes(&page, state, row);
	end_page(&page, state);
}
