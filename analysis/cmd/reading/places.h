/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the rows of tables go: one file of one table, a directory with a file for each table, a
 * database, or a directory of Parquet files in partitions (TABLE/date=/host=/program=/KEY.parquet).
 *
 * Contract: errors are printed, and counted in `failed`: what follows is dropped then. A file
 * appears only when it is complete. Rows come process by process: places_begin, places_put,
 * places_end; and places_close once, which returns -1 when anything failed, and leaves nothing new
 * behind except whole partitions.
 */
#pragma once

#include "analysis/cmd/cli/output.h"
#include "analysis/view/tables/database.h"
#include "analysis/view/tables/table_file.h"
#include "analysis/view/tables/process_key.h"

enum place_layout { PLACE_FILES, PLACE_PARTITIONS, PLACE_DATABASE };

struct place_format {
	const char *name;   /* of --to */
	const char *ending;
	const char *about;  /* one phrase: which tools read it */
	enum place_layout layout;
	const struct table_file *file; /* NULL: database */
};
/* csv, ndjson, sqlite, parquet; name NULL at the end. */
extern const struct place_format place_formats[];
const struct place_format *place_format_find(const char *name); /* NULL: none */

enum { PLACE_TABLES_MAX = 32 };

struct places_request {
	const struct place_format *format;
	const struct table *tables[PLACE_TABLES_MAX + 1]; /* NULL-terminated */
	const char *path;   /* of -o; NULL: stdout */
	bool force;
};

struct table_places;
struct table_places *places_open(const struct places_request *request); /* NULL after an error */
/* Whether this process is there already: partitions are not written twice without force. */
bool places_have(const struct table_places *places, const struct process_key *key);
void places_begin(struct table_places *places, const struct process_key *key);
void places_put(void *places, const struct table *table, const struct cell *cells);
void places_end(struct table_places *places);
bool places_failed(const struct table_places *places);
int places_close(struct table_places *places, bool keep);
