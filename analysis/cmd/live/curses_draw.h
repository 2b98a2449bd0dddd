/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the state into ncurses' picture of the screen, which then sends what has changed.
 * Contract: the terminal is open. state->page is set to the rows that its table has.
 */
#pragma once

#include "analysis/cmd/live/state.h"

struct drawing {
	const char *subject;
	bool has_colour;  /* pairs 1 to 7 are the colours of curses */
	bool is_ascii;
	int lines, columns;
	int y;            /* the next line */
};

void draw_screen(struct drawing *drawing, struct state *state);

/*
 * Text on the screen: cut at columns, whatever the width of its characters, and the two screens
 * that are nothing but lines of it.
 *
 * Contract: texts are clean (base/clean.h). Columns beyond the screen are not drawn.
 */

enum tone { TONE_PLAIN, TONE_HEAD, TONE_DIM, TONE_GOOD, TONE_WARN, TONE_BAD, TONE_BAR };

static inline int least_of_int(int a, int b) { return a < b ? a : b; }

void draw_begin(struct drawing *drawing);
/* At most `columns` columns; what does not fit ends with "..". */
void draw_text(const struct drawing *drawing, int y, int x, int columns, enum tone tone,
	       const char *text);
/* Of the line drawing->y: from x on, and right of the column that ended at x. Both return where
 * they end. */
int draw_column(const struct drawing *drawing, int x, int columns, enum tone tone,
		const char *text);
int draw_figure(const struct drawing *drawing, int x, int columns, const char *text);
/* Cells of a bar, in a colour of their owner. */
void draw_cells(const struct drawing *drawing, int y, int x, int count, char letter,
		unsigned owner);
void draw_head_line(struct drawing *drawing); /* the line is a head; goes to the next one */
void draw_selected(const struct drawing *drawing);

/* "+46.0 MiB/s"; "" where it does not rise */
void site_rate(const struct site_row *row, char *out, size_t bytes);

void draw_help(struct drawing *drawing, struct state *state);
void draw_stack(struct drawing *drawing, struct state *state);
