/* SPDX-License-Identifier: Apache-2.0 */
/* Columns measured, then printed. Cells lie in one array, row after row; row 0 holds the titles. */
#include "analysis/view/text/table.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/clean.h"

enum { TABLE_CELL_BYTES = 1024, TABLE_GAP = 2, TABLE_FLEX_MIN = 12 };

struct table {
	const struct style *style;
	const struct table_column *columns;
	size_t column_count, row_count, room;
	char **cells;
	enum style_tone *tones;
};

static void add_row(struct table *t, const char *const *cells)
{
	char clean[TABLE_CELL_BYTES];
	if (t->row_count == t->room) {
		t->room = t->room ? 2 * t->room : 16;
		t->cells = xalloc_resize(t->cells, t->room * t->column_count, sizeof *t->cells);
		t->tones = xalloc_resize(t->tones, t->room, sizeof *t->tones);
	}
	for (size_t i = 0; i < t->column_count; i++) {
		clean_terminal(clean, sizeof clean, cells[i] ? cells[i] : "", !t->style->utf8);
		t->cells[t->row_count * t->column_count + i] = xalloc_string(clean);
	}
	t->tones[t->row_count++] = STYLE_PLAIN;
}

struct table *table_new(const struct style *style, const struct table_column *columns, size_t count)
{
	struct table *t = xalloc_zeroed(1, sizeof *t);
	const char *titles[16] = { 0 };
	t->style = style;
	t->columns = columns;
	t->column_count = count;
	for (size_t i = 0; i < count && i < sizeof titles / sizeof *titles; i++)
		titles[i] = columns[i].title;
	add_row(t, titles);
	t->tones[0] = STYLE_HEAD;
	return t;
}

void table_row(struct table *t, const char *const *cells) { add_row(t, cells); }
void table_tone(struct table *t, enum style_tone tone) { t->tones[t->row_count - 1] = tone; }

static void measure(const struct table *t, unsigned indent, size_t *widths)
{
	size_t total = indent, flex = t->column_count;
	for (size_t c = 0; c < t->column_count; c++) {
		widths[c] = 0;
		for (size_t r = 0; r < t->row_count; r++) {
			size_t columns = clean_columns(t->cells[r * t->column_count + c]);
			if (columns > widths[c])
				widths[c] = columns;
		}
		total += widths[c] + (c ? TABLE_GAP : 0);
		if (t->columns[c].align == TABLE_FLEX)
			flex = c;
	}
	if (total <= t->style->columns || flex == t->column_count)
		return;
	total -= t->style->columns;
	widths[flex] = widths[flex] > total + TABLE_FLEX_MIN ? widths[flex] - total : TABLE_FLEX_MIN;
}

/* Prints at most width columns; what is cut ends in "..". Returns the columns printed. */
static size_t print_cut(FILE *out, const char *text, size_t width)
{
	size_t columns = clean_columns(text), keep = width > 2 ? width - 2 : width;
	if (columns <= width) {
		fputs(text, out);
		return columns;
	}
	for (size_t i = 0; i < keep; i++) {
		size_t length = clean_character(text);
		fwrite(text, 1, length, out);
		text += length;
	}
	fputs(width > 2 ? ".." : "", out);
	return width;
}

static void print_row(const struct table *t, FILE *out, size_t row, unsigned indent, const size_t *widths)
{
	size_t last = t->column_count, pending = indent;
	char **cells = t->cells + row * t->column_count;
	while (last && !*cells[last - 1])
		last--;
	fputs(style_on(t->style, t->tones[row]), out);
	for (size_t c = 0; c < last; c++) {
		size_t columns = clean_columns(cells[c]), width = widths[c];
		if (t->columns[c].align == TABLE_RIGHT && columns < width)
			pending += width - columns;
		fprintf(out, "%*s", (int)pending, "");
		columns = print_cut(out, cells[c], width);
		pending = TABLE_GAP + (t->columns[c].align == TABLE_RIGHT ? 0 : width - columns);
	}
	fprintf(out, "%s\n", t->tones[row] == STYLE_PLAIN ? "" : style_off(t->style));
}

void table_print(const struct table *t, FILE *out, unsigned indent)
{
	size_t widths[16];
	bool titles = false;
	measure(t, indent, widths);
	for (size_t c = 0; c < t->column_count; c++)
		titles |= *t->cells[c] != 0;
	for (size_t r = titles ? 0 : 1; r < t->row_count; r++)
		print_row(t, out, r, indent, widths);
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->row_count * t->column_count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->tones);
	free(t);
}
