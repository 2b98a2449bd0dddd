/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer over everything that is written for other programs: each format of `cuflight export`,
 * each table, and the HTML page. Any bytes that are read as a recording give a whole document, by
 * the document's own rules: JSON, lines of CSV with one number of fields, protobuf, and so on. Real
 * readers check the same with fewer recordings (e2e/export/mutants.bats).
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "analysis/explain/facts_build.h"
#include "analysis/facts/history/timeline.h"
#include "analysis/view/export/formats.h"
#include "analysis/view/html/assets.h"
#include "analysis/view/html/html_page.h"
#include "analysis/view/tables/database.h"
#include "analysis/view/tables/table_file.h"
#include "analysis/view/tables/process_key.h"
#include "analysis/view/tables/tables.h"
#include "tests/fuzz/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The page itself is of no interest here, only what is put into it. */
const unsigned char html_js[] = "let page", html_css[] = "body{}";
const size_t html_js_bytes = sizeof html_js - 1, html_css_bytes = sizeof html_css - 1;
const char html_js_hash[] = "x", html_css_hash[] = "x";

/* What was written. */
struct document { char *text; size_t bytes; };

static FILE *document_open(struct document *document)
{
	FILE *file;

	*document = (struct document){ 0 };
	file = open_memstream(&document->text, &document->bytes);
	if (!file)
		abort();
	return file;
}

#define must(so) ((so) ? (void)0 : broken(__LINE__, #so))

static _Noreturn void broken(int line, const char *rule)
{
	fprintf(stderr, "exports.c:%d: not so: %s\n", line, rule);
	abort();
}

/* ---- the rules of documents ---- */

static bool is_json(const char *text, size_t bytes)
{
	struct json_check check;
	FILE *file = json_check_open(&check);

	must(file != NULL);
	fwrite(text, 1, bytes, file);
	fclose(file);
	return json_check_whole(&check);
}

/* Each line by itself, and the last one ends. */
static void check_lines(const struct document *document, bool (*fine)(const char *line, size_t bytes))
{
	const char *at = document->text, *end = at + document->bytes;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		must(line_end && fine(at, (size_t)(line_end - at)));
		at = line_end + 1;
	}
}

/* "main;read 4096" */
static bool is_folded(const char *line, size_t bytes)
{
	size_t digits = 0;

	while (digits < bytes && isdigit((unsigned char)line[bytes - 1 - digits]))
		digits++;
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)line[i] < ' ')
			return false;
	return digits && digits + 1 < bytes && line[bytes - 1 - digits] == ' ';
}

/* RFC 4180: every record has as many fields as the table has columns. */
static void check_csv(const struct document *document, size_t columns)
{
	bool quoted = false;
	size_t fields = 1;

	for (size_t i = 0; i < document->bytes; i++) {
		char c = document->text[i];

		if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == ',')
			fields++;
		else if (!quoted && c == '\n') {
			must(fields == columns);
			fields = 1;
		}
	}
	must(!quoted && fields == 1);
}

/* A message of protobuf: fields of wire types 0, 1, 2 and 5 that end where it ends. */
static void check_protobuf(const unsigned char *at, size_t bytes)
{
	const unsigned char *end = at + bytes;

	while (at < end) {
		uint64_t word[2] = { 0 }; /* the tag, and the number behind it */
		size_t words = 2;

		for (size_t i = 0; i < words; i++) {
			unsigned shift = 0;

			do {
				must(at < end && shift < 70);
				word[i] |= shift < 64 ? (uint64_t)(*at & 0x7f) << shift : 0;
				shift += 7;
			} while (*at++ & 0x80);
			if (!i && (word[0] & 7) != 0 && (word[0] & 7) != 2)
				words = 1;
		}
		must(word[0] >> 3);
		if (words == 1) {
			must((word[0] & 7) == 1 || (word[0] & 7) == 5);
			word[1] = (word[0] & 7) == 1 ? 8 : 4;
		}
		if ((word[0] & 7) != 0) {
			must(word[1] <= (uint64_t)(end - at));
			at += word[1];
		}
	}
}

/* The same, compressed by gzip. */
static void check_pprof(const struct document *document)
{
	static unsigned char message[16 << 20];
	z_stream stream = { .next_in = (unsigned char *)document->text,
		            .avail_in = (unsigned)document->bytes,
		            .next_out = message, .avail_out = sizeof message };

	must(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
	must(inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_in);
	check_protobuf(message, sizeof message - stream.avail_out);
	inflateEnd(&stream);
}

/* ---- what is written ---- */

static void write_format(const struct export_format *format, struct rows *rows)
{
	struct document document;
	struct export_target target = { .file = document_open(&document) };
	int result = format->write(&target, rows);

	fclose(target.file);
	if (result)
		must(*target.error);
	else if (format == &export_perfetto)
		must(is_json(document.text, document.bytes));
	else if (format == &export_folded)
		check_lines(&document, is_folded);
	else if (format == &export_pprof)
		check_pprof(&document);
	else if (format == &export_torch_snapshot) /* a pickle: PROTO 2 to STOP */
		must(document.bytes > 2 && document.text[0] == '\x80' &&
		     document.text[document.bytes - 1] == '.');
	free(document.text);
}

struct table_sink {
	const struct table_file *file; /* NULL: database */
	void *state;
};

static void put(void *context, const struct table *table, const struct cell *cells)
{
	struct table_sink *sink = context;

	if (sink->file)
		sink->file->row(sink->state, cells);
	else
		database_row(sink->state, table, cells);
}

static void write_table(struct sheet *sheet, struct table_sink *sink)
{
	struct document document;
	FILE *file = document_open(&document);

	sink->state = sink->file->begin(file, sheet->table);
	sheet->table->write(sheet);
	sink->file->end(sink->state);
	fclose(file);
	if (sink->file == &table_file_ndjson)
		check_lines(&document, is_json);
	else if (sink->file == &table_file_csv)
		check_csv(&document, sheet->table->column_count);
	else
		must(document.bytes > 12 && !memcmp(document.text, "PAR1", 4) &&
		     !memcmp(document.text + document.bytes - 4, "PAR1", 4));
	free(document.text);
}

static void write_tables(const struct table_file *file, const struct facts *facts,
			 struct frames *frames, struct rows *rows)
{
	static char texts[TABLE_COLUMNS_MAX * TABLE_TEXT_MAX];
	struct table_sink sink = { .file = file };
	struct process_key key;
	struct sheet sheet = { .facts = facts, .frames = frames, .rows = rows,
			       .places = places_new(facts, frames), .key = key.text,
			       .put = put, .state = &sink, .texts = texts };
	char error[256];

	process_key_of(&facts->processes[0], &key);
	if (!file)
		sink.state = database_open(":memory:", table_all);
	for (size_t i = 0; table_all[i]; i++) {
		sheet.table = table_all[i];
		if (file)
			write_table(&sheet, &sink);
		else
			sheet.table->write(&sheet);
	}
	if (!file)
		must(!database_close(sink.state, error, sizeof error));
	places_free(sheet.places);
}

static void write_page(const struct facts *facts, struct frames *frames)
{
	struct document document;
	FILE *file = document_open(&document);
	struct timeline *timeline = timeline_build(facts, facts->run, 1);
	enum html_result result = html_report(file, facts, frames, timeline, "x.cuf");

	fclose(file);
	must(result == HTML_WRITTEN ? document.bytes && document.bytes <= HTML_BYTES_MOST
	                            : !document.bytes);
	timeline_free(timeline);
	free(document.text);
}

/* ---- one input ---- */

/* The choice is one number: formats, then kinds of tables, then the page. */
static void write_one(unsigned choice, const struct facts *facts, struct frames *frames)
{
	static const struct table_file *const files[] = { &table_file_csv, &table_file_ndjson,
		                                          &table_file_parquet, NULL };
	struct rows_filter filter = rows_filter_all();
	unsigned formats = 0;
	struct rows *rows;

	while (export_formats[formats])
		formats++;
	choice %= formats + 5;
	if (choice == formats + 4) {
		write_page(facts, frames);
		return;
	}
	if (choice < formats && export_formats[choice]->sums)
		filter.kinds &= ~(1u << CUF_KIND_FRAMEWORK);
	rows = rows_new(facts, frames, &filter);
	if (choice < formats)
		write_format(export_formats[choice], rows);
	else
		write_tables(files[choice - formats], facts, frames, rows);
	rows_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct facts_options options = { .at = bytes ? (enum facts_at)(data[bytes - 1] % 5)
		                                     : FACTS_AT_AUTO,
		                         .at_value = 1,
		                         .threads = 1 };
	struct symbols *symbols;
	struct frames *frames;
	struct facts *facts;

	if (facts_build_memory(data, bytes, &options, &facts, NULL))
		return 0;
	/* modules are looked for where there are none */
	symbols = symbols_new(&(struct symbols_options){ .sysroot = "/dev/null" });
	frames = frames_new(facts, symbols);
	write_one(data[bytes - 1] / 5, facts, frames);
	frames_free(frames);
	symbols_free(symbols);
	facts_free(facts);
	return 0;
}
