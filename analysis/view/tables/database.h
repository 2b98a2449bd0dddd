/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables in one SQLite database, with indexes and with views for common questions.
 *
 * Contract: the file is empty before and complete after database_close, which returns -1 and the
 * reason when anything failed, and frees everything. Values are parameters of prepared statements,
 * so no text of a recording is ever SQL. TIME is ISO 8601 text, BOOLEAN is 0 or 1.
 */
#pragma once

#include "analysis/view/tables/table.h"

struct database;
/* tables: NULL-terminated, those that will be filled; the views need all. */
struct database *database_open(const char *path, const struct table *const *tables);
void database_row(struct database *database, const struct table *table, const struct cell *cells);
int database_close(struct database *database, char *error, size_t error_bytes);

/* Its indexes and views. Constant; ends with sql NULL. */
struct database_view {
	const char *name; /* NULL: indexes */
	const char *help; /* one sentence, as of a column */
	const char *sql;
	const char *tables[4]; /* that it reads; NULL-terminated */
};
extern const struct database_view database_views[];
