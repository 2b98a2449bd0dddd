/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that is exported: its name and its columns, rows of fields.h as the JSON has them. The
 * cells are written by them, and so are the types of SQL and Parquet and cuflight-tables(7).
 *
 * Contract: constant data. A row is an array of cells in the order of the columns. An unknown cell
 * is a null, whatever else it holds. A text is borrowed for the call, and has whatever bytes the
 * recorded program had: whoever writes it makes it valid (clean_utf8). TIME is CLOCK_REALTIME in
 * nanoseconds; formats that have a type for it write microseconds.
 */
#pragma once

#include "analysis/view/json/fields.h"

/* What a field is as a column. */
enum column_type { COLUMN_TEXT, COLUMN_INTEGER, COLUMN_REAL, COLUMN_BOOLEAN, COLUMN_TIME,
	COLUMN_TYPES };
extern const char *const column_type_names[COLUMN_TYPES]; /* text integer real boolean time */

enum column_type column_type(const struct field *column);

enum { TABLE_COLUMNS_MAX = 48, TABLE_TEXT_MAX = 16384 };

struct cell {
	bool known;
	union {
		const char *text;
		int64_t integer; /* also of TIME; of BOOLEAN 0 or 1 */
		double real;
	};
};

struct sheet;

struct table {
	const char *name;
	const char *help; /* as the meaning of a column: without a capital and a full stop */
	const struct field *columns;
	size_t column_count;
	void (*write)(struct sheet *sheet); /* all rows of one process */
};
