/* SPDX-License-Identifier: Apache-2.0 */
/* Characters to cells. */
#include "analysis/cmd/top/curses_text.h"

#include <ncursesw/curses.h>
#include <math.h>
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
static int columns_of(wchar_t character)
{
	int columns = wcwidth(character);

	return columns < 0 ? 1 : columns;
}

static int columns_of_text(const wchar_t *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += columns_of(*text);
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

static void cut(wchar_t *text, int columns)
{
	int used = 0;
	size_t at = 0;

	if (columns_of_text(text) <= columns)
		return;
	while (text[at] && used + columns_of(text[at]) <= columns - 2)
		used += columns_of(text[at++]);
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
	cut(wide, columns);
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
