/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as in RFC 4180, and one JSON object a line. */
#include "analysis/view/tables/table_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/tables/parquet.h"

#define SECOND_NS 1000000000

void table_time(char out[TABLE_TIME_BYTES], int64_t time_ns)
{
	int64_t below = (time_ns % SECOND_NS + SECOND_NS) % SECOND_NS;
	time_t seconds = (time_t)((time_ns - below) / SECOND_NS);
	struct tm utc;
	size_t used;

	gmtime_r(&seconds, &utc);
	used = strftime(out, TABLE_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out + used, TABLE_TIME_BYTES - used, ".%06dZ", (int)(below / 1000));
}

struct text_file { FILE *file; const struct table *table; };

static void *text_begin(FILE *file, const struct table *table)
{
	struct text_file *text = xalloc_zeroed(1, sizeof *text);

	*text = (struct text_file){ file, table };
	return text;
}

/* Seventeen digits are the whole number; JSON and CSV have no other way to write one. */
static void write_number(FILE *file, const struct field *column, const struct cell *cell)
{
	if (column_type(column) == COLUMN_REAL)
		fprintf(file, "%.17g", cell->real);
	else if (column_type(column) == COLUMN_BOOLEAN)
		fputs(cell->integer ? "true" : "false", file);
	else
		fprintf(file, "%" PRId64, cell->integer);
}

/* ---- CSV ---- */

/* A spreadsheet takes a cell that begins so for a formula, and runs it. */
static bool is_formula(const char *text) { return *text && strchr("=+-@\t\r", *text); }

static void write_quoted(FILE *file, const char *text)
{
	putc('"', file);
	if (is_formula(text))
		putc('\'', file);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', file);
		putc(*text, file);
	}
	putc('"', file);
}

static void *csv_begin(FILE *file, const struct table *table)
{
	for (size_t i = 0; i < table->column_count; i++)
		fprintf(file, "%s%s", i ? "," : "", table->columns[i].key);
	fputs("\r\n", file);
	return text_begin(file, table);
}

static void csv_row(void *state, const struct cell *cells)
{
	struct text_file *csv = state;
	char time[TABLE_TIME_BYTES];

	for (size_t i = 0; i < csv->table->column_count; i++) {
		const struct field *column = &csv->table->columns[i];

		if (i)
			putc(',', csv->file);
		if (!cells[i].known)
			continue;
		if (column_type(column) == COLUMN_TEXT) {
			write_quoted(csv->file, cells[i].text);
		} else if (column_type(column) == COLUMN_TIME) {
			table_time(time, cells[i].integer);
			fputs(time, csv->file);
		} else {
			write_number(csv->file, column, &cells[i]);
		}
	}
	fputs("\r\n", csv->file);
}

const struct table_file table_file_csv = { csv_begin, csv_row, free };

/* ---- NDJSON ---- */

static void write_json_text(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20)
			fprintf(file, "\\u%04x", byte);
		else if (byte == '"' || byte == '\\')
			fprintf(file, "\\%c", byte);
		else
			putc(byte, file);
	}
	putc('"', file);
}

static void ndjson_row(void *state, const struct cell *cells)
{
	struct text_file *json = state;
	char time[TABLE_TIME_BYTES];

	for (size_t i = 0; i < json->table->column_count; i++) {
		const struct field *column = &json->table->columns[i];

		fprintf(json->file, "%s\"%s\":", i ? "," : "{", column->key);
		if (!cells[i].known) {
			fputs("null", json->file);
		} else if (column_type(column) == COLUMN_TEXT) {
			write_json_text(json->file, cells[i].text);
		} else if (column_type(column) == COLUMN_TIME) {
			table_time(time, cells[i].integer);
			fprintf(json->file, "\"%s\"", time);
		} else {
			write_number(json->file, column, &cells[i]);
		}
	}
	fputs("}\n", json->file);
}

const struct table_file table_file_ndjson = { text_begin, ndjson_row, free };

/* ---- Parquet ---- */

static void *begin_parquet(FILE *file, const struct table *table)
{
	return parquet_begin(file, table);
}

static void row_parquet(void *state, const struct cell *cells)
{
	parquet_row(state, cells);
}

static void end_parquet(void *state)
{
	parquet_end(state);
}

const struct table_file table_file_parquet = { begin_parquet, row_parquet, end_parquet };
