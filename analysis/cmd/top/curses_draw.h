/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the state into ncurses' picture of the screen, which then sends what has changed.
 * Contract: the terminal is open. state->page is set to the rows that its table has.
 */
#pragma once

#include "analysis/cmd/top/state.h"

struct drawing {
	const char *subject;
	bool has_colour;  /* pairs 1 to 7 are the colours of curses */
	bool is_ascii;
	int lines, columns;
	int y;            /* the next line */
};

void draw_screen(struct drawing *drawing, struct state *state);
