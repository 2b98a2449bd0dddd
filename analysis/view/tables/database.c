/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody reads the file before it is complete, so nothing is journalled. */
#include "analysis/view/tables/database.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/tables/table_file.h"

enum { TABLES_MAX = 32, SQL_BYTES = 8192 };

struct database {
	sqlite3 *sqlite;
	const struct table *const *tables;
	sqlite3_stmt *inserts[TABLES_MAX];
	char error[256]; /* "": nothing failed yet */
};

static void note_error(struct database *database)
{
	if (!*database->error)
		snprintf(database->error, sizeof database->error, "%s",
			 database->sqlite ? sqlite3_errmsg(database->sqlite) : "no memory");
}

static void run_sql(struct database *database, const char *sql)
{
	if (!*database->error &&
	    sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
		note_error(database);
}

static const char *type_of(enum column_type type)
{
	static const char *const types[COLUMN_TYPES] = { "TEXT", "INTEGER", "REAL", "BOOLEAN",
							 "TIMESTAMP" };
	return types[type];
}

static void create_table(struct database *database, const struct table *table)
{
	char sql[SQL_BYTES];
	size_t used = (size_t)snprintf(sql, sizeof sql, "CREATE TABLE %s (", table->name);

	for (size_t i = 0; i < table->column_count; i++)
		used += (size_t)snprintf(sql + used, sizeof sql - used, "%s\"%s\" %s",
					 i ? ", " : "", table->columns[i].key,
					 type_of(column_type(&table->columns[i])));
	snprintf(sql + used, sizeof sql - used, ")");
	run_sql(database, sql);
}

static void prepare_insert(struct database *database, size_t number, const struct table *table)
{
	char sql[SQL_BYTES];
	size_t used = (size_t)snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (", table->name);

	for (size_t i = 0; i < table->column_count; i++)
		used += (size_t)snprintf(sql + used, sizeof sql - used, "%s?", i ? "," : "");
	snprintf(sql + used, sizeof sql - used, ")");
	if (!*database->error &&
	    sqlite3_prepare_v2(database->sqlite, sql, -1, &database->inserts[number], NULL) !=
		    SQLITE_OK)
		note_error(database);
}

struct database *database_open(const char *path, const struct table *const *tables)
{
	struct database *database = xalloc_zeroed(1, sizeof *database);

	database->tables = tables;
	if (sqlite3_open_v2(path, &database->sqlite, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    NULL) != SQLITE_OK)
		note_error(database);
	run_sql(database, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
			  "PRAGMA cache_size=-32768; BEGIN");
	for (size_t i = 0; tables[i] && i < TABLES_MAX; i++) {
		create_table(database, tables[i]);
		prepare_insert(database, i, tables[i]);
	}
	return database;
}

static void bind_cell(sqlite3_stmt *insert, int place, enum column_type type,
		      const struct cell *cell)
{
	char time[TABLE_TIME_BYTES];

	if (!cell->known) {
		sqlite3_bind_null(insert, place);
	} else if (type == COLUMN_TEXT) {
		sqlite3_bind_text(insert, place, cell->text, -1, SQLITE_STATIC);
	} else if (type == COLUMN_REAL) {
		sqlite3_bind_double(insert, place, cell->real);
	} else if (type == COLUMN_TIME) {
		table_time(time, cell->integer);
		sqlite3_bind_text(insert, place, time, -1, SQLITE_TRANSIENT);
	} else {
		sqlite3_bind_int64(insert, place, cell->integer);
	}
}

void database_row(struct database *database, const struct table *table, const struct cell *cells)
{
	sqlite3_stmt *insert;
	size_t number = 0;

	if (*database->error)
		return;
	while (database->tables[number] != table)
		number++;
	insert = database->inserts[number];
	for (size_t i = 0; i < table->column_count; i++)
		bind_cell(insert, (int)i + 1, column_type(&table->columns[i]), &cells[i]);
	if (sqlite3_step(insert) != SQLITE_DONE)
		note_error(database);
	sqlite3_reset(insert);
}

static bool has_table(const struct database *database, const char *name)
{
	for (size_t i = 0; database->tables[i]; i++)
		if (!strcmp(database->tables[i]->name, name))
			return true;
	return false;
}

/* Indexes and views of the tables that are there. */
static void finish(struct database *database)
{
	for (size_t i = 0; database_views[i].sql; i++) {
		bool all = true;

		for (size_t j = 0; database_views[i].tables[j]; j++)
			all = all && has_table(database, database_views[i].tables[j]);
		if (all)
			run_sql(database, database_views[i].sql);
	}
	run_sql(database, "COMMIT");
}

int database_close(struct database *database, char *error, size_t error_bytes)
{
	int failed;

	finish(database);
	for (size_t i = 0; i < TABLES_MAX; i++)
		sqlite3_finalize(database->inserts[i]);
	if (sqlite3_close(database->sqlite) != SQLITE_OK)
		note_error(database);
	failed = *database->error ? -1 : 0;
	snprintf(error, error_bytes, "%s", database->error);
	free(database);
	return failed;
}
