/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/tables/sheet.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include "analysis/base/clean.h"

/* The next cell of the row; its column must have this type. */
static struct cell *next_cell(struct sheet *sheet, enum column_type type)
{
	struct cell *cell = &sheet->cells[sheet->count];

	assert(sheet->count < sheet->table->column_count);
	assert(sheet->table->columns[sheet->count].type == type);
	sheet->count++;
	*cell = (struct cell){ .known = false };
	return cell;
}

void sheet_begin(struct sheet *sheet)
{
	sheet->count = sheet->text_bytes = 0;
	cell_text(sheet, sheet->key);
}

void cell_text(struct sheet *sheet, const char *text)
{
	struct cell *cell = next_cell(sheet, COLUMN_TEXT);
	char *at = sheet->texts + sheet->text_bytes;

	if (!text)
		return;
	clean_utf8(at, TABLE_TEXT_MAX, text);
	sheet->text_bytes += strlen(at) + 1;
	*cell = (struct cell){ .known = true, .text = at };
}

void cell_word(struct sheet *sheet, const char *text)
{
	cell_text(sheet, text && *text ? text : NULL);
}

void cell_number(struct sheet *sheet, uint64_t number)
{
	struct cell *cell = next_cell(sheet, COLUMN_INTEGER);

	if (number <= INT64_MAX)
		*cell = (struct cell){ .known = true, .integer = (int64_t)number };
}

void cell_positive(struct sheet *sheet, uint64_t number)
{
	cell_number(sheet, number ? number : CUF_UNKNOWN);
}

void cell_index(struct sheet *sheet, uint32_t number)
{
	cell_number(sheet, number == FACT_NONE ? CUF_UNKNOWN : number);
}

void cell_real(struct sheet *sheet, double real)
{
	struct cell *cell = next_cell(sheet, COLUMN_REAL);

	if (isfinite(real))
		*cell = (struct cell){ .known = true, .real = real };
}

void cell_flag(struct sheet *sheet, bool flag)
{
	*next_cell(sheet, COLUMN_BOOLEAN) = (struct cell){ .known = true, .integer = flag };
}

void cell_time(struct sheet *sheet, uint64_t time_ns)
{
	struct cell *cell = next_cell(sheet, COLUMN_TIME);

	if (time_ns <= INT64_MAX)
		*cell = (struct cell){ .known = true, .integer = (int64_t)time_ns };
}

void cell_null(struct sheet *sheet)
{
	sheet->cells[sheet->count++] = (struct cell){ .known = false };
}

void sheet_end(struct sheet *sheet)
{
	assert(sheet->count == sheet->table->column_count);
	sheet->put(sheet->state, sheet->table, sheet->cells);
}

void cell_device(struct sheet *sheet, uint32_t device)
{
	cell_index(sheet, device == FACT_NONE ? FACT_NONE : sheet->facts->devices[device].ordinal);
}

void cell_stack(struct sheet *sheet, const struct fact_stack *stack)
{
	cell_positive(sheet, stack->process == FACT_NONE ? 0 : stack->id);
}

bool sheet_wants(const struct sheet *sheet, uint32_t kind, uint32_t device)
{
	return kind < 32 && rows_filter_of(sheet->rows)->kinds >> kind & 1 &&
	       rows_want_device(sheet->rows, device);
}
