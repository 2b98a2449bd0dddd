/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/tables/sheet.h"

#include <math.h>
#include <string.h>
#include "analysis/base/clean.h"

const void *sheet_of(const struct fields *fields, const void *row)
{
	return fields->document;
}

static struct cell text_cell(struct sheet *sheet, const char *text)
{
	char *at = sheet->texts + sheet->text_bytes;

	clean_utf8(at, TABLE_TEXT_MAX, text);
	sheet->text_bytes += strlen(at) + 1;
	return (struct cell){ .known = true, .text = at };
}

static struct cell integer_cell(uint64_t number)
{
	return (struct cell){ .known = number <= INT64_MAX, .integer = (int64_t)number };
}

static struct cell cell_of(struct sheet *sheet, struct field_value value)
{
	switch (value.sort) {
	case VALUE_TEXT: return text_cell(sheet, value.text);
	case VALUE_NUMBER: return integer_cell(value.number);
	case VALUE_SIGNED: return (struct cell){ .known = true, .integer = value.integer };
	case VALUE_FLAG: return (struct cell){ .known = true, .integer = value.flag };
	case VALUE_REAL: return (struct cell){ .known = isfinite(value.real), .real = value.real };
	default: return (struct cell){ .known = false };
	}
}

void sheet_row(struct sheet *sheet, const void *row)
{
	const struct table *table = sheet->table;
	struct fields fields = { .facts = sheet->facts, .frames = sheet->frames,
				 .document = sheet };

	sheet->text_bytes = 0;
	for (size_t i = 0; i < table->column_count; i++)
		sheet->cells[i] = cell_of(sheet, fields_value(&fields, &table->columns[i], row));
	sheet->put(sheet->state, table, sheet->cells);
}

bool sheet_wants(const struct sheet *sheet, uint32_t kind, uint32_t device)
{
	return kind < 32 && rows_filter_of(sheet->rows)->kinds >> kind & 1 &&
	       rows_want_device(sheet->rows, device);
}
