/* SPDX-License-Identifier: Apache-2.0 */
/* "PAR1", row groups, FileMetaData, its length in four bytes, "PAR1". */
#include "analysis/view/tables/parquet.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/tables/parquet_column.h"

/* A row group ends at either: rows, or bytes of its values. */
enum { GROUP_ROWS = 1 << 16, GROUP_BYTES = 12 << 20 };

/* Numbers of parquet.thrift. */
enum { VERSION = 1, OPTIONAL = 1, CONVERTED_UTF8 = 0, CONVERTED_MICROS = 10 };
enum { LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, LOGICAL_INTEGER = 10 };

static const char magic[4] = { 'P', 'A', 'R', '1' };

struct parquet {
	const struct table *table;
	struct parquet_column columns[TABLE_COLUMNS_MAX];
	struct parquet_out out;
	struct thrift groups; /* the elements of FileMetaData.row_groups, one after another */
	size_t group_count, group_rows;
	uint64_t rows;
};

struct parquet *parquet_begin(FILE *file, const struct table *table)
{
	struct parquet *parquet = xalloc_zeroed(1, sizeof *parquet);

	parquet->table = table;
	parquet->out.file = file;
	for (size_t i = 0; i < table->column_count; i++)
		parquet_column_init(&parquet->columns[i], &table->columns[i]);
	parquet_out_add(&parquet->out, magic, sizeof magic);
	return parquet;
}

static void write_group(struct parquet *parquet)
{
	struct thrift *meta = &parquet->groups;
	struct parquet_sizes all = { 0 };
	uint64_t start = parquet->out.offset;

	thrift_element(meta);
	thrift_list(meta, 1, THRIFT_STRUCT, parquet->table->column_count);
	for (size_t i = 0; i < parquet->table->column_count; i++) {
		struct parquet_sizes sizes =
			parquet_column_write(&parquet->columns[i], &parquet->out, meta);

		all.plain_bytes += sizes.plain_bytes;
		all.written_bytes += sizes.written_bytes;
	}
	thrift_i64(meta, 2, (int64_t)all.plain_bytes);
	thrift_i64(meta, 3, (int64_t)parquet->group_rows);
	thrift_i64(meta, 5, (int64_t)start);
	thrift_i64(meta, 6, (int64_t)all.written_bytes);
	thrift_end(meta);
	parquet->group_count++;
	parquet->group_rows = 0;
}

static size_t group_bytes(const struct parquet *parquet)
{
	size_t bytes = 0;

	for (size_t i = 0; i < parquet->table->column_count; i++)
		bytes += parquet_column_bytes(&parquet->columns[i]);
	return bytes;
}

void parquet_row(struct parquet *parquet, const struct cell *cells)
{
	for (size_t i = 0; i < parquet->table->column_count; i++)
		parquet_column_add(&parquet->columns[i], &cells[i]);
	parquet->rows++;
	parquet->group_rows++;
	if (parquet->group_rows == GROUP_ROWS ||
	    (parquet->group_rows % 1024 == 0 && group_bytes(parquet) >= GROUP_BYTES))
		write_group(parquet);
}

/* ---- the footer ---- */

static void describe_time(struct thrift *meta)
{
	thrift_i32(meta, 6, CONVERTED_MICROS);
	thrift_struct(meta, 10);
	thrift_struct(meta, LOGICAL_TIMESTAMP);
	thrift_bool(meta, 1, true); /* in UTC */
	thrift_struct(meta, 2);
	thrift_empty(meta, 2); /* microseconds */
	thrift_end(meta);
	thrift_end(meta);
	thrift_end(meta);
}

static void describe_logical(struct thrift *meta, enum column_type type)
{
	switch (type) {
	case COLUMN_TEXT:
		thrift_i32(meta, 6, CONVERTED_UTF8);
		thrift_struct(meta, 10);
		thrift_empty(meta, LOGICAL_STRING);
		thrift_end(meta);
		break;
	case COLUMN_INTEGER:
		thrift_struct(meta, 10);
		thrift_struct(meta, LOGICAL_INTEGER);
		thrift_i8(meta, 1, 64);
		thrift_bool(meta, 2, true); /* signed */
		thrift_end(meta);
		thrift_end(meta);
		break;
	case COLUMN_TIME: describe_time(meta); break;
	default: break;
	}
}

static void describe_schema(struct thrift *meta, const struct table *table)
{
	thrift_list(meta, 2, THRIFT_STRUCT, table->column_count + 1);
	thrift_element(meta);
	thrift_text(meta, 4, table->name);
	thrift_i32(meta, 5, (int32_t)table->column_count);
	thrift_end(meta);
	for (size_t i = 0; i < table->column_count; i++) {
		thrift_element(meta);
		thrift_i32(meta, 1, parquet_type_of(column_type(&table->columns[i])));
		thrift_i32(meta, 3, OPTIONAL);
		thrift_text(meta, 4, table->columns[i].key);
		describe_logical(meta, column_type(&table->columns[i]));
		thrift_end(meta);
	}
}

/* Bounds are in the order of the types. Readers use them only if the file states it. */
static void describe_orders(struct thrift *meta, size_t count)
{
	thrift_list(meta, 7, THRIFT_STRUCT, count);
	for (size_t i = 0; i < count; i++) {
		thrift_element(meta);
		thrift_empty(meta, 1);
		thrift_end(meta);
	}
}

static void write_footer(struct parquet *parquet)
{
	struct thrift meta = { .depth = 0 };
	struct bytes tail = { 0 };

	thrift_i32(&meta, 1, VERSION);
	describe_schema(&meta, parquet->table);
	thrift_i64(&meta, 3, (int64_t)parquet->rows);
	thrift_list(&meta, 4, THRIFT_STRUCT, parquet->group_count);
	bytes_add(&meta.bytes, parquet->groups.bytes.at, parquet->groups.bytes.count);
	thrift_text(&meta, 6, "cuflight version " CUFLIGHT_VERSION);
	describe_orders(&meta, parquet->table->column_count);
	thrift_end(&meta);
	bytes_add_number(&tail, meta.bytes.count, 4);
	bytes_add(&tail, magic, sizeof magic);
	parquet_out_add(&parquet->out, meta.bytes.at, meta.bytes.count);
	parquet_out_add(&parquet->out, tail.at, tail.count);
	bytes_fini(&tail);
	thrift_fini(&meta);
}

void parquet_end(struct parquet *parquet)
{
	if (parquet->group_rows)
		write_group(parquet);
	write_footer(parquet);
	for (size_t i = 0; i < parquet->table->column_count; i++)
		parquet_column_fini(&parquet->columns[i]);
	thrift_fini(&parquet->groups);
	bytes_fini(&parquet->out.page);
	bytes_fini(&parquet->out.packed);
	free(parquet);
}
