/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/reading/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/unfinished.h"

const struct place_format place_formats[] = {
	{ "csv", ".csv", "spreadsheets, pandas", PLACE_FILES, &table_file_csv },
	{ "ndjson", ".ndjson", "jq, ClickHouse, log pipelines", PLACE_FILES, &table_file_ndjson },
	{ "sqlite", ".sqlite", "sqlite3, with views", PLACE_DATABASE, NULL },
	{ "parquet", ".parquet", "DuckDB, Spark, pandas, ClickHouse", PLACE_PARTITIONS,
	  &table_file_parquet },
	{ .name = NULL },
};

const struct place_format *place_format_find(const char *name)
{
	for (size_t i = 0; place_formats[i].name; i++)
		if (!strcmp(place_formats[i].name, name))
			return &place_formats[i];
	return NULL;
}

/* The file of one table. Its output keeps the path. */
struct sink { struct output output; char path[PATH_MAX]; void *state; bool any; };

struct table_places {
	struct places_request request;
	struct sink places[PLACE_TABLES_MAX];
	struct output output; /* of the database */
	struct database *database;
	const struct process_key *key;
	struct process_key last; /* the process that was begun last */
	bool failed, one_file;
};

enum { OWNER_ONLY = 0700 };

/* Where partitions are written. Readers of a layout skip names that begin with '_'. */
static const char unfinished[] = "_unfinished";

static size_t index_of_table(const struct table_places *places, const struct table *table)
{
	size_t number = 0;

	while (places->request.tables[number] != table)
		number++;
	return number;
}

/* ---- directories ---- */

/* All directories above the last '/' of a path. */
static int make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int failed;

		*slash = 0;
		failed = mkdir(path, OWNER_ONLY) && errno != EEXIST;
		*slash = '/';
		if (failed)
			return -1;
	}
	return 0;
}

static int refuse_path(struct table_places *places, const char *path)
{
	say_error("cannot write '%s': %s", path, strerror(errno));
	places->failed = true;
	return -1;
}

/* ---- partitions ---- */

static void partition_path(const struct table_places *places, const struct table *table,
			   const struct process_key *key, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%s/%s/%s%s", places->request.path, table->name, key->partition,
		 key->file, places->request.format->ending);
}

static int open_partition(struct table_places *places, struct sink *place,
			  const struct table *table)
{
	char temporary[2 * PATH_MAX];

	partition_path(places, table, places->key, place->path, sizeof place->path);
	snprintf(temporary, sizeof temporary, "%s/%s/%s.%d", places->request.path, unfinished,
		 table->name, (int)getpid());
	if (make_directories(place->path) || make_directories(temporary))
		return refuse_path(places, place->path);
	unlink(temporary);
	if (output_open_path(&place->output, temporary, true)) {
		places->failed = true;
		return -1;
	}
	/* it is written there, and appears here */
	place->output.path = place->path;
	return 0;
}

/* ---- one table ---- */

static int open_place(struct table_places *places, struct sink *place, const struct table *table)
{
	const struct places_request *request = &places->request;

	if (request->format->layout == PLACE_PARTITIONS) {
		if (open_partition(places, place, table))
			return -1;
	} else {
		snprintf(place->path, sizeof place->path, "%s", request->path ? request->path : "");
		if (!places->one_file)
			snprintf(place->path, sizeof place->path, "%s/%s%s", request->path,
				 table->name, request->format->ending);
		if (!places->one_file && make_directories(place->path))
			return refuse_path(places, place->path);
		if (output_open_path(&place->output, request->path ? place->path : NULL,
				     request->force)) {
			places->failed = true;
			return -1;
		}
	}
	place->state = request->format->file->begin(place->output.file, table);
	return 0;
}

static void close_place(struct table_places *places, struct sink *place, bool keep)
{
	if (!place->state)
		return;
	places->request.format->file->end(place->state);
	place->state = NULL;
	if (!keep || places->failed)
		output_abandon(&place->output);
	else if (output_close(&place->output))
		places->failed = true;
}

/* The first table comes last: its file tells that those of the others are complete. */
static void close_all(struct table_places *places, bool keep)
{
	for (size_t i = PLACE_TABLES_MAX; i-- && places->request.format->file;)
		close_place(places, &places->places[i], keep);
}

/* ---- the interface ---- */

/* Files are opened before the work, so that those that exist are refused at once. */
static void open_all(struct table_places *places)
{
	const struct places_request *request = &places->request;

	if (request->format->layout == PLACE_PARTITIONS)
		return;
	if (request->format->layout == PLACE_FILES) {
		for (size_t i = 0; request->tables[i] && !places->failed; i++)
			open_place(places, &places->places[i], request->tables[i]);
		return;
	}
	if (output_open_named(&places->output, request->path, request->force)) {
		places->failed = true;
		return;
	}
	if (*places->output.temporary) {
		places->database = database_open(places->output.temporary, request->tables);
		return;
	}
	say_error("cannot write a database to '%s': it is no regular file", request->path);
	output_abandon(&places->output);
	places->failed = true;
}

static void unfinished_path(const struct table_places *places, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", places->request.path, unfinished);
}

struct table_places *places_open(const struct places_request *request)
{
	struct table_places *places = xalloc_zeroed(1, sizeof *places);
	char path[PATH_MAX];
	struct stat st;

	places->request = *request;
	unfinished_path(places, path);
	if (request->format->layout == PLACE_PARTITIONS)
		unfinished_add(path, UNFINISHED_EMPTY);
	places->one_file = request->format->layout == PLACE_FILES && request->tables[0] &&
			   !request->tables[1] &&
			   (!request->path || stat(request->path, &st) || !S_ISDIR(st.st_mode));
	open_all(places);
	if (!places->failed)
		return places;
	places_close(places, false);
	return NULL;
}

bool places_have(const struct table_places *places, const struct process_key *key)
{
	const struct places_request *request = &places->request;
	char path[PATH_MAX];

	if (request->format->layout != PLACE_PARTITIONS || request->force)
		return false;
	partition_path(places, request->tables[0], key, path, sizeof path);
	return !access(path, F_OK);
}

void places_begin(struct table_places *places, const struct process_key *key)
{
	places->last = *key;
	places->key = &places->last;
}

void places_put(void *context, const struct table *table, const struct cell *cells)
{
	struct table_places *places = context;
	struct sink *place;

	if (places->failed)
		return;
	place = &places->places[index_of_table(places, table)];
	place->any = true;
	if (places->database) {
		database_row(places->database, table, cells);
		return;
	}
	if (!place->state && open_place(places, place, table))
		return;
	places->request.format->file->row(place->state, cells);
}

void places_end(struct table_places *places)
{
	if (places->request.format->layout == PLACE_PARTITIONS)
		close_all(places, true);
}

bool places_failed(const struct table_places *places) { return places->failed; }

/* A table without rows gets one file without rows, so that it can be queried. */
static void add_empty_tables(struct table_places *places)
{
	for (size_t i = 0; places->request.tables[i] && places->key && !places->failed; i++) {
		const struct table *table = places->request.tables[i];
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s/%s", places->request.path, table->name);
		if (!places->places[i].any && access(path, F_OK))
			open_place(places, &places->places[i], table);
	}
	close_all(places, true);
}

static void close_database(struct table_places *places, bool keep)
{
	char error[256];
	bool bad = database_close(places->database, error, sizeof error) != 0;

	if (bad && keep)
		say_error("cannot write '%s': %s", places->request.path, error);
	if (bad || !keep)
		output_abandon(&places->output);
	else if (!output_close(&places->output))
		return;
	places->failed = true;
}

int places_close(struct table_places *places, bool keep)
{
	char path[PATH_MAX];
	bool failed;

	if (places->database)
		close_database(places, keep && !places->failed);
	else if (places->request.format->layout == PLACE_PARTITIONS && keep)
		add_empty_tables(places);
	close_all(places, keep);
	unfinished_path(places, path);
	if (places->request.format->layout == PLACE_PARTITIONS)
		unfinished_remove(path, UNFINISHED_EMPTY);
	failed = places->failed;
	free(places);
	return failed ? -1 : 0;
}
