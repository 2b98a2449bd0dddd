/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes and views of the SQLite database. Contract: constant; ends with sql NULL. */
#ifndef VIEW_TABLE_FILES_DATABASE_VIEWS_H
#define VIEW_TABLE_FILES_DATABASE_VIEWS_H

struct database_view {
	const char *name; /* NULL: indexes */
	const char *help; /* one sentence, as of a column */
	const char *sql;
	const char *tables[4]; /* that it reads; NULL-terminated */
};
extern const struct database_view database_views[];

#endif
