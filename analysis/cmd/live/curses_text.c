/* SPDX-License-Identifier: Apache-2.0 */
/* Characters to cells; the help and the stack of a row, lines that can be scrolled. */
#include "analysis/cmd/live/curses_draw.h"

#include <math.h>
#include <ncursesw/curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"

void draw_begin(struct drawing *drawing)
{
	getmaxyx(stdscr, drawing->lines, drawing->columns);
	drawing->y = 0;
	erase();
}

/* Nothing depends on colour. */
static attr_t attributes_of(const struct drawing *drawing, enum tone tone)
{
	static const attr_t plain[] = { A_NORMAL, A_BOLD, A_DIM, A_NORMAL, A_BOLD, A_BOLD,
					A_REVERSE };
	static const short colours[] = { 0, 0, 0, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, 0 };

	return plain[tone] | (drawing->has_colour ? COLOR_PAIR(colours[tone]) : 0);
}

/* ---- cutting ---- */

/* Columns of a character; what has none of its own (accents) goes with the one before. */
static int columns_of_char(wchar_t character)
{
	int columns = wcwidth(character);

	return columns < 0 ? 1 : columns;
}

static int columns_of_text(const wchar_t *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += columns_of_char(*text);
	return columns;
}

static void to_wide(const struct drawing *drawing, const char *text, wchar_t *out, size_t room)
{
	char clean[1200];
	const char *from = clean;
	mbstate_t state = { 0 };
	size_t used = 0;

	clean_terminal(clean, sizeof clean, text, drawing->is_ascii);
	while (*from && used + 1 < room) {
		size_t length = mbrtowc(&out[used], from, strlen(from), &state);

		if (length == 0 || length > 4) { /* not of this locale */
			out[used] = L'?';
			length = 1;
			state = (mbstate_t){ 0 };
		} else if (wcwidth(out[used]) < 0) {
			out[used] = L'?';
		}
		from += length;
		used++;
	}
	out[used] = 0;
}

static void cut_text(wchar_t *text, int columns)
{
	int used = 0;
	size_t at = 0;

	if (columns_of_text(text) <= columns)
		return;
	while (text[at] && used + columns_of_char(text[at]) <= columns - 2)
		used += columns_of_char(text[at++]);
	for (int i = 0; i < 2 && used + i < columns; i++)
		text[at++] = L'.';
	text[at] = 0;
}

void draw_text(const struct drawing *drawing, int y, int x, int columns, enum tone tone,
	       const char *text)
{
	attr_t attributes = attributes_of(drawing, tone);
	wchar_t wide[1200];

	columns = least_of_int(columns, drawing->columns - x);
	if (columns <= 0 || x < 0 || y < 0 || y >= drawing->lines)
		return;
	to_wide(drawing, text, wide, sizeof wide / sizeof *wide);
	cut_text(wide, columns);
	attron(attributes);
	mvaddwstr(y, x, wide);
	attroff(attributes);
}

int draw_column(const struct drawing *drawing, int x, int columns, enum tone tone,
		const char *text)
{
	draw_text(drawing, drawing->y, x, columns, tone, text);
	return x + columns;
}

/* Figures are ASCII. */
int draw_figure(const struct drawing *drawing, int x, int columns, const char *text)
{
	int length = (int)strlen(text);

	draw_text(drawing, drawing->y, x + 1 + (length < columns ? columns - length : 0), columns,
		  TONE_PLAIN, text);
	return x + 1 + columns;
}

/* ---- lines and bars ---- */

void draw_cells(const struct drawing *drawing, int y, int x, int count, char letter,
		unsigned owner)
{
	/* what is free has no colour, what nobody here owns has few */
	static const short colours[WATCH_OWNER_MAX] = {
		COLOR_BLUE, COLOR_MAGENTA, COLOR_GREEN, COLOR_CYAN, COLOR_YELLOW, COLOR_CYAN,
		COLOR_GREEN, COLOR_WHITE, COLOR_YELLOW, COLOR_YELLOW, COLOR_YELLOW, COLOR_CYAN,
		COLOR_RED, COLOR_RED, 0,
	};
	attr_t attributes = drawing->has_colour && colours[owner] ?
				    COLOR_PAIR(colours[owner]) | A_REVERSE : A_NORMAL;

	for (int i = 0; i < count; i++)
		mvaddch(y, x + i, (chtype)(unsigned char)letter | attributes);
}

void draw_head_line(struct drawing *drawing)
{
	mvchgat(drawing->y++, 0, -1, A_REVERSE, 0, NULL);
}

void draw_selected(const struct drawing *drawing)
{
	mvchgat(drawing->y, 0, -1, A_BOLD | A_REVERSE, 0, NULL);
}

void site_rate(const struct site_row *row, char *out, size_t bytes)
{
	*out = 0;
	if (!isnan(row->bytes_per_s))
		snprintf(out, bytes, "%s/s", units_bytes_signed(row->bytes_per_s).s);
}

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
