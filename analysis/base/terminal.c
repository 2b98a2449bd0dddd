/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal abilities, from the environment and the stream. */
#include "analysis/base/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"

static bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value;
}

static bool is_on(const char *name)
{
	return is_set(name) && strcmp(getenv(name), "0") != 0;
}

/* Explicit settings come before the terminal, and NO_COLOR before the others (no-color.org). */
static bool wants_colour(FILE *out)
{
	const char *term = getenv("TERM");
	if (is_set("NO_COLOR"))
		return false;
	if (is_on("FORCE_COLOR") || is_on("CLICOLOR_FORCE"))
		return true;
	return isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
}

static unsigned columns_of(FILE *out)
{
	const char *value = getenv("COLUMNS");
	struct winsize size;
	long columns = 0;
	if (value)
		columns = atol(value);
	if (columns <= 0 && isatty(fileno(out)) && !ioctl(fileno(out), TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (columns <= 0)
		columns = STYLE_COLUMNS;
	if (columns < STYLE_COLUMNS_MIN)
		return STYLE_COLUMNS_MIN;
	if (columns > STYLE_COLUMNS_MAX)
		return STYLE_COLUMNS_MAX;
	return (unsigned)columns;
}

void style_init(struct style *style, FILE *out, enum style_colour colour)
{
	style->colour = colour == STYLE_ALWAYS || (colour == STYLE_AUTO && wants_colour(out));
	style->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	style->columns = columns_of(out);
}

const char *style_on(const struct style *style, enum style_tone tone)
{
	static const char *const codes[STYLE_TONES] = {
		[STYLE_PLAIN] = "",
		[STYLE_BAD] = "\033[1;31m",
		[STYLE_GOOD] = "\033[32m",
		[STYLE_WARN] = "\033[33m",
		[STYLE_HEAD] = "\033[1m",
		[STYLE_DIM] = "\033[2m",
	};
	return style->colour ? codes[tone] : "";
}

const char *style_off(const struct style *style)
{
	return style->colour ? "\033[0m" : "";
}

enum { TABLE_CELL_BYTES = 1024, TABLE_GAP = 2, TABLE_FLEX_MIN = 12 };

struct table {
	const struct style *style;
	const struct table_column *columns;
	size_t column_count, row_count, room;
	char **cells;
	enum style_tone *tones;
};

/* Cells are cleaned here, so that measure and print see the same characters. */
static void add_table_row(struct table *table, const char *const *cells)
{
	char clean[TABLE_CELL_BYTES];
	if (table->row_count == table->room) {
		table->room = 2 * table->room + 16;
		table->cells = xalloc_resize(table->cells, table->room * table->column_count,
			sizeof *table->cells);
		table->tones = xalloc_resize(table->tones, table->room, sizeof *table->tones);
	}
	for (size_t i = 0; i < table->column_count; i++) {
		const char *cell = cells[i];
		if (!cell)
			cell = "";
		clean_terminal(clean, sizeof clean, cell, !table->style->utf8);
		table->cells[table->row_count * table->column_count + i] = xalloc_string(clean);
	}
	table->tones[table->row_count++] = STYLE_PLAIN;
}

struct table *table_new(const struct style *style, const struct table_column *columns,
			size_t count)
{
	struct table *table = xalloc_zeroed(1, sizeof *table);
	const char *titles[16] = { 0 };
	table->style = style;
	table->columns = columns;
	table->column_count = count;
	for (size_t i = 0; i < count && i < sizeof titles / sizeof *titles; i++)
		titles[i] = columns[i].title;
	add_table_row(table, titles);
	table->tones[0] = STYLE_HEAD;
	return table;
}

void table_row(struct table *table, const char *const *cells)
{
	add_table_row(table, cells);
}

void table_tone(struct table *table, enum style_tone tone)
{
	table->tones[table->row_count - 1] = tone;
}

static bool is_right(const struct table *table, size_t column)
{
	return table->columns[column].align == TABLE_RIGHT ||
	       table->columns[column].align == TABLE_RIGHT_IF_ANY;
}

static bool is_left_out(const struct table *table, size_t column)
{
	if (table->columns[column].align != TABLE_RIGHT_IF_ANY)
		return false;
	for (size_t r = 1; r < table->row_count; r++)
		if (*table->cells[r * table->column_count + column])
			return false;
	return true;
}

/*
 * Each column is as wide as its widest cell. Only the flexible one gives way, down to
 * TABLE_FLEX_MIN.
 */
static void measure(const struct table *table, unsigned indent, size_t *widths)
{
	size_t total = indent, flex = table->column_count;
	for (size_t c = 0; c < table->column_count; c++) {
		widths[c] = 0;
		if (is_left_out(table, c))
			continue;
		for (size_t r = 0; r < table->row_count; r++) {
			size_t columns = clean_columns(table->cells[r * table->column_count + c]);
			if (columns > widths[c])
				widths[c] = columns;
		}
		total += widths[c];
		if (c)
			total += TABLE_GAP;
		if (table->columns[c].align == TABLE_FLEX)
			flex = c;
	}
	if (total <= table->style->columns || flex == table->column_count)
		return;
	total -= table->style->columns;
	if (widths[flex] > total + TABLE_FLEX_MIN)
		widths[flex] -= total;
	else
		widths[flex] = TABLE_FLEX_MIN;
}

/* Prints at most width columns; what is cut ends in "..". Returns the columns printed. */
static size_t print_cut(FILE *out, const char *text, size_t width)
{
	size_t columns = clean_columns(text), keep = width;
	if (columns <= width) {
		fputs(text, out);
		return columns;
	}
	if (width > 2)
		keep = width - 2;
	for (size_t i = 0; i < keep; i++) {
		size_t length = clean_character(text);
		fwrite(text, 1, length, out);
		text += length;
	}
	if (width > 2)
		fputs("..", out);
	return width;
}

/* Padding is printed before the next cell and not after the last one: no blanks end a line. */
static void print_table_row(const struct table *table, FILE *out, size_t row, unsigned indent,
			    const size_t *widths)
{
	size_t last = table->column_count, pending = indent;
	char **cells = table->cells + row * table->column_count;
	while (last && !*cells[last - 1])
		last--;
	fputs(style_on(table->style, table->tones[row]), out);
	for (size_t c = 0; c < last; c++) {
		size_t columns = clean_columns(cells[c]), width = widths[c];
		if (is_left_out(table, c))
			continue;
		if (is_right(table, c) && columns < width)
			pending += width - columns;
		fprintf(out, "%*s", (int)pending, "");
		columns = print_cut(out, cells[c], width);
		pending = TABLE_GAP;
		if (!is_right(table, c))
			pending += width - columns;
	}
	if (table->tones[row] != STYLE_PLAIN)
		fputs(style_off(table->style), out);
	fputc('\n', out);
}

/* Without titles row 0 is empty and would be a blank line. */
void table_print(const struct table *table, FILE *out, unsigned indent)
{
	size_t widths[16];
	bool titles = false;
	size_t first = 0;
	measure(table, indent, widths);
	for (size_t c = 0; c < table->column_count; c++)
		titles |= *table->cells[c] != 0;
	if (!titles)
		first = 1;
	for (size_t r = first; r < table->row_count; r++)
		print_table_row(table, out, r, indent, widths);
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->row_count * table->column_count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->tones);
	free(table);
}

static unsigned text_columns(const char *text, size_t bytes)
{
	unsigned columns = 0;
	for (size_t i = 0; i < bytes; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

void flow_text(FILE *out, const char *text, unsigned indent, unsigned from, unsigned columns)
{
	unsigned column = from;
	while (*text) {
		size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");
		unsigned width = text_columns(text, blanks + word);
		if (column > indent && column + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			text += blanks;
			width -= (unsigned)blanks;
			blanks = 0;
		}
		fprintf(out, "%.*s", (int)(blanks + word), text);
		column += width;
		text += blanks + word;
	}
	fputc('\n', out);
}
