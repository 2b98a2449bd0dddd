/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader's screen can show: colour, UTF-8, width. Nothing depends on colour.
 * Contract: style_init looks at the stream and the environment once; texts returned are
 * static, "" where there is no colour.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { STYLE_COLUMNS = 80 /* what is laid out for, where nothing else is known */,
	STYLE_COLUMNS_MIN = 40, STYLE_COLUMNS_MAX = 1000 };
enum style_colour { STYLE_AUTO, STYLE_ALWAYS, STYLE_NEVER };
enum style_tone { STYLE_PLAIN, STYLE_BAD, STYLE_GOOD, STYLE_WARN, STYLE_HEAD, STYLE_DIM,
	STYLE_TONES };

struct style {
	bool colour, utf8;
	unsigned columns; /* at least 40 */
};

/*
 * colour: --color. NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM=dumb and whether out is a
 * terminal decide on AUTO. The locale must have been set (LC_CTYPE).
 */
void style_init(struct style *style, FILE *out, enum style_colour colour);
const char *style_on(const struct style *style, enum style_tone tone);
const char *style_off(const struct style *style);

/*
 * Aligned text tables. Contract: cells are copied and cleaned for a terminal on the way in;
 * column widths are those of the widest cell; when a row is wider than the screen the one
 * flexible column is cut, with ".." at the cut. NULL cells are empty. table_free frees all;
 * one thread.
 */

enum table_align {
	TABLE_LEFT,
	TABLE_RIGHT,
	TABLE_RIGHT_IF_ANY, /* left out when no row has a cell in it */
	TABLE_FLEX          /* left, and cut when there is no room */
};
struct table_column { const char *title; enum table_align align; };

struct table;

struct table *table_new(const struct style *style, const struct table_column *columns,
			size_t count);
void table_row(struct table *table, const char *const *cells);
/* Tone of the row added last. */
void table_tone(struct table *table, enum style_tone tone);
/* Titles first, unless all are NULL. indent: blanks before every line. */
void table_print(const struct table *table, FILE *out, unsigned indent);
void table_free(struct table *table);

/*
 * Running text broken between words. Contract: writes to out, ends with a newline; text is
 * clean (clean.h); columns are of the terminal; a word longer than a line stays whole.
 */

/* The first word starts at column `from`, where the cursor is; further lines start at `indent`. */
void flow_text(FILE *out, const char *text, unsigned indent, unsigned from, unsigned columns);
