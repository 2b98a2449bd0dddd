/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/reading/export_tables.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/progress.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/suggest.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/recording/pack.h"
#include "analysis/replay/run.h"
#include "analysis/symbols/names_file.h"
#include "analysis/view/tables/tables.h"

/*
 * The recordings that operands name: files, packs, and directories with all that is below them.
 *
 * Contract: sources_find returns -1 after an error on stderr; what it found is freed by
 * sources_free. Paths are in the order of their names, without duplicates of one operand. Links in
 * directories are not followed. Nothing is opened yet.
 */
struct sources { char **paths; size_t count, room; };

static void add_path(struct sources *sources, const char *path)
{
	xalloc_grow(&sources->paths, sources->count, &sources->room, sizeof *sources->paths);
	sources->paths[sources->count++] = xalloc_string(path);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int ends_with_cuf(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && !strcmp(name + length - 4, ".cuf");
}

static void walk(struct sources *sources, const char *directory);

static void add_source(struct sources *sources, const char *directory, const char *name)
{
	struct stat st;
	char *path;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return;
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		abort();
	if (lstat(path, &st))
		say_error("cannot read '%s': %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		walk(sources, path);
	else if (S_ISREG(st.st_mode) && ends_with_cuf(name))
		add_path(sources, path);
	free(path);
}

/* A directory that cannot be read is named, and the others count. */
static void walk(struct sources *sources, const char *directory)
{
	struct dirent **list;
	int count = scandir(directory, &list, NULL, by_name);

	if (count < 0) {
		say_error("cannot read '%s': %s", directory, strerror(errno));
		return;
	}
	for (int i = 0; i < count; i++) {
		add_source(sources, directory, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

static int sources_find(struct sources *sources, char *const *operands, size_t count)
{
	struct stat st;

	for (size_t i = 0; i < count; i++) {
		size_t before = sources->count;

		if (stat(operands[i], &st)) {
			say_error("cannot open '%s': %s", operands[i], strerror(errno));
			return -1;
		}
		if (!S_ISDIR(st.st_mode)) {
			add_path(sources, operands[i]);
			continue;
		}
		walk(sources, operands[i]);
		if (sources->count == before) {
			say_error("no recordings in '%s'", operands[i]);
			return -1;
		}
	}
	return 0;
}

static void sources_free(struct sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		free(sources->paths[i]);
	free(sources->paths);
}

/* Call sites of one process; more would be no table that a person reads. */
enum { SITES_MAX = 65536 };

struct exporting {
	const struct export_tables *asked;
	struct table_places *places;
	struct hash_index seen; /* keys of processes */
	char *texts;            /* of struct sheet */
	struct progress progress;
	size_t done, exported, unreadable, there, twice;
};

/* ---- options ---- */

static int add_table(struct places_request *places, size_t *count, const char *name)
{
	const char *names[PLACE_TABLES_MAX], *near;
	const struct table *table = table_find(name);
	size_t known = 0;

	for (size_t i = 0; i < *count; i++)
		if (places->tables[i] == table)
			return 0;
	if (table) {
		places->tables[(*count)++] = table;
		return 0;
	}
	for (; table_all[known]; known++)
		names[known] = table_all[known]->name;
	near = suggest_nearest(name, names, known);
	if (near)
		say_error("unknown table '%s' for --table; did you mean '%s'?", name, near);
	else
		say_error("unknown table '%s' for --table; 'man cuflight-tables' lists them", name);
	return -1;
}

static int choose_tables(struct places_request *places, const struct opts *opts)
{
	size_t typed, count = 0;
	const char *const *names = opts_list(opts, "table", &typed);

	for (size_t i = 0; i < typed; i++)
		if (add_table(places, &count, names[i]))
			return -1;
	for (size_t i = 0; !typed && table_all[i]; i++)
		places->tables[count++] = table_all[i];
	return 0;
}

int export_tables_read(struct export_tables *tables, const struct opts *opts)
{
	struct places_request *places = &tables->places;

	tables->opts = opts;
	places->force = opts_has(opts, "force");
	places->path = opts_text(opts, "output");
	if (places->path && !strcmp(places->path, "-"))
		places->path = NULL;
	if (choose_tables(places, opts))
		return -1;
	if (places->path || (places->format->layout == PLACE_FILES && !places->tables[1]))
		return 0;
	if (places->format->layout == PLACE_FILES)
		say_error("--to=%s has one file for each table: name a directory with -o, or one "
			  "table with --table", places->format->name);
	else
		say_error("--to=%s writes a %s: name it with -o", places->format->name,
			  places->format->layout == PLACE_DATABASE ? "file" : "directory");
	return -1;
}

/* ---- one process ---- */

/* What the driver calls device N; a number that none has leaves only what is of no device out. */
static uint32_t device_index(const struct facts *facts, uint64_t ordinal)
{
	if (ordinal == CUF_UNKNOWN)
		return FACT_NONE;
	for (uint32_t i = 0; i < facts->device_count; i++)
		if (facts->devices[i].ordinal == ordinal)
			return i;
	return FACT_NONE - 1;
}

static void write_tables(struct exporting *exporting, const struct facts *facts,
			 const struct process_key *key)
{
	const struct export_tables *asked = exporting->asked;
	struct frames *frames = frames_new(facts, asked->symbols);
	struct rows_filter filter = asked->filter;
	struct sheet sheet = {
		.facts = facts,
		.frames = frames,
		.places = places_new(facts, frames),
		.key = key->text,
		.at_moment = asked->facts.at != FACTS_AT_AUTO,
		.put = places_put,
		.state = exporting->places,
		.texts = exporting->texts,
	};

	filter.device = device_index(facts, asked->device);
	sheet.rows = rows_new(facts, frames, &filter);
	places_begin(exporting->places, key);
	for (size_t i = 0; asked->places.tables[i] && !places_failed(exporting->places); i++) {
		sheet.table = asked->places.tables[i];
		sheet.table->write(&sheet);
	}
	places_end(exporting->places);
	rows_free(sheet.rows);
	places_free(sheet.places);
	frames_free(frames);
}

/* A copy of a recording is the same process. */
static bool is_new(struct exporting *exporting, const struct process_key *key)
{
	uint32_t *number = hash_index_place(&exporting->seen,
					    hash_index_text(&exporting->seen, key->text));

	if (*number)
		return false;
	*number = 1;
	return true;
}

static void export_process(struct exporting *exporting, const struct facts *facts)
{
	const struct export_tables *asked = exporting->asked;
	const struct fact_process *process = &facts->processes[0];
	struct process_key key;

	if (asked->filter.pid && process->pid != asked->filter.pid)
		return;
	process_key_of(process, &key);
	if (!is_new(exporting, &key)) {
		exporting->twice++;
		say_info("'%s' is of a process that was exported already, so it is left out",
			 process->path);
	} else if (places_have(exporting->places, &key)) {
		exporting->there++;
	} else {
		/* what the facts needed goes back before the blocks are streamed */
		run_forget_live(facts->run);
#ifdef __GLIBC__
		malloc_trim(0);
#endif
		write_tables(exporting, facts, &key);
		exporting->exported++;
	}
}

/* ---- one recording ---- */

static void note_left_out(struct exporting *exporting, const char *path,
			  const struct reader_error *error)
{
	exporting->unreadable++;
	refuse_recording(path, error);
}

static void export_recording(struct exporting *exporting, const char *path)
{
	struct facts_options options = exporting->asked->facts;
	struct reader_error error = { 0 };
	struct facts *facts;

	options.symbols = exporting->asked->symbols;
	options.sites_max = SITES_MAX;
	if (facts_build(path, &options, &facts, &error)) {
		note_left_out(exporting, path, &error);
		return;
	}
	export_process(exporting, facts);
	facts_free(facts);
}

/* Each recording of a pack by itself, as if it lay in a directory. */
static void export_pack(struct exporting *exporting, const char *path)
{
	struct facts_options options = exporting->asked->facts;
	struct reader_error error = { 0 };
	struct pack *pack;

	options.symbols = exporting->asked->symbols;
	options.sites_max = SITES_MAX;
	if (pack_open(path, &pack, &error)) {
		note_left_out(exporting, path, &error);
		return;
	}
	names_file_read(options.symbols, pack_names(pack));
	for (size_t i = 0; i < pack_count(pack); i++) {
		struct reader *reader;
		struct facts *facts;

		if (pack_recording(pack, i, &reader, &error)) {
			note_left_out(exporting, path, &error);
			continue;
		}
		if (!facts_build_memory(reader->data, reader->bytes, &options, &facts, &error)) {
			facts->processes[0].path = reader->path;
			export_process(exporting, facts);
			facts_free(facts);
		}
		reader_close(reader);
	}
	pack_close(pack);
}

/* ---- all of them ---- */

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

static void print_summary(const struct exporting *exporting, const struct sources *sources)
{
	const char *path = exporting->asked->places.path;

	if (sources->count > 1 || exporting->there)
		say_info("exported %zu process%s%s%s", exporting->exported,
			 exporting->exported == 1 ? "" : "es", path ? " to " : "",
			 path ? path : "");
	if (exporting->there)
		say_info("%zu %s there already; -f writes them again", exporting->there,
			 exporting->there == 1 ? "was" : "were");
	if (exporting->unreadable)
		say_error("%zu of %zu recording%s could not be read and %s left out",
			  exporting->unreadable, sources->count, plural(sources->count),
			  exporting->unreadable == 1 ? "is" : "are");
}

static int finish_export(struct exporting *exporting, const struct sources *sources)
{
	bool any = exporting->exported || exporting->there;

	if (places_close(exporting->places, any) && any)
		return EXPORT_FAILED;
	if (cut_guard_seen()) {
		say_error("a recording was truncated while it was read: what is exported of it may "
			  "be wrong. Export a copy of it");
		return EXPORT_FAILED;
	}
	print_summary(exporting, sources);
	if (exporting->asked->filter.pid && !any && !exporting->unreadable) {
		say_error("no recording is of process %u", exporting->asked->filter.pid);
		return EXPORT_FAILED;
	}
	if (!any)
		return EXPORT_FAILED;
	return exporting->unreadable ? EXPORT_PARTIAL : EXPORT_FINE;
}

int export_tables(struct export_tables *tables)
{
	struct exporting exporting = { .asked = tables };
	struct sources sources = { 0 };
	int status = EXPORT_FAILED;

	if (sources_find(&sources, tables->opts->operands, (size_t)tables->opts->operand_count)) {
		sources_free(&sources);
		return EXPORT_FAILED;
	}
	exporting.places = places_open(&tables->places);
	if (exporting.places) {
		hash_index_init(&exporting.seen, sources.count);
		exporting.texts = xalloc_bytes((size_t)TABLE_COLUMNS_MAX * TABLE_TEXT_MAX);
		progress_begin(&exporting.progress, opts_has(tables->opts, "quiet"));
		exporting.progress.unit = "recordings";
		for (size_t i = 0; i < sources.count && !places_failed(exporting.places); i++) {
			if (pack_is(sources.paths[i]))
				export_pack(&exporting, sources.paths[i]);
			else
				export_recording(&exporting, sources.paths[i]);
			progress_step(&exporting.progress, i + 1, sources.count);
		}
		progress_end(&exporting.progress);
		status = finish_export(&exporting, &sources);
		hash_index_fini(&exporting.seen);
		free(exporting.texts);
	}
	sources_free(&sources);
	return status;
}
