/* SPDX-License-Identifier: Apache-2.0 */
/* The file, part by part: policy, text, data, script. */
#include "analysis/view/html/html_page.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/html/assets.h"
#include "analysis/view/html/data.h"
#include "analysis/view/html/packed.h"
#include "analysis/view/html/site_rows.h"
#include "analysis/view/json/json_stream.h"

/* What everything but the data may need: text and markup. */
enum { TITLE_BYTES = 256 };

/* The text report, as a terminal of 80 columns shows it, without colour. */
struct texts {
	char *screen, *full;
	char title[TITLE_BYTES];
};

static char *print_text(const struct facts *facts, struct frames *frames, const char *operand,
			bool full)
{
	static const struct style style = { .utf8 = true, .columns = STYLE_COLUMNS };
	struct report_text_options options = { .full = full, .operand = operand };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return xalloc_string("");
	report_text(out, facts, frames, &style, &options);
	fclose(out);
	return text;
}

static void texts_make(struct texts *texts, const struct facts *facts, struct frames *frames,
		       const char *operand)
{
	size_t line;

	texts->screen = print_text(facts, frames, operand, false);
	texts->full = print_text(facts, frames, operand, true);
	line = strcspn(texts->screen, "\n");
	snprintf(texts->title, sizeof texts->title, "%.*s", (int)least_of(line, 200),
		 texts->screen);
}

static void texts_free(struct texts *texts)
{
	free(texts->screen);
	free(texts->full);
}

/* ---- the data ---- */

/* How much of each list there is; the next row is tried when the file is too large. */
static const struct fit { size_t rows, blocks; } fits[] = {
	{ JSON_ROWS_MAX, 1000000 }, { 1024, 100000 }, { 256, 40000 }, { 32, 10000 }, { 4, 1000 },
};

/* NULL: the document of the report is too large. */
static char *write_json(struct data *data, size_t *bytes)
{
	struct json_stream stream;
	struct fields fields = { .stream = &stream, .facts = data->facts, .state = data,
				 .origin_ns = data->timeline->begin_ns };
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);
	bool is_whole = out != NULL;

	if (out) {
		json_stream_begin(&stream, out, UINT64_MAX);
		stream.style = JSON_C_TO_STRING_PLAIN;
		fields_row(&fields, NULL, &page_shape, data);
		is_whole = !fclose(out) && !stream.stopped;
	}
	if (is_whole)
		return text;
	free(text);
	return NULL;
}

/* The packed data; NULL: it has more than `most` bytes as text. */
static uint8_t *make_data(const struct facts *facts, const struct text *text,
			  const struct timeline *timeline, const uint32_t *rows,
			  const struct texts *texts, const struct fit *fit, size_t most,
			  size_t *bytes)
{
	struct data data = { .facts = facts, .timeline = timeline, .text = text,
			     .row_of_site = rows,
			     .blocks_most = fit->blocks, .rows = fit->rows,
			     .title = texts->title, .screen = texts->screen,
			     .full = texts->full };
	uint8_t *packed = NULL;
	size_t json_bytes;
	char *json;

	strings_init(&data.strings);
	tree_init(&data.tree);
	data_run_init(&data);
	json = write_json(&data, &json_bytes);
	if (json)
		packed = packed_make(json, json_bytes, &data.columns, bytes);
	free(json);
	free(data.made);
	holders_free(&data.holders);
	columns_fini(&data.columns);
	strings_fini(&data.strings);
	tree_fini(&data.tree);
	if (packed && packed_base64_bytes(*bytes) <= most)
		return packed;
	free(packed);
	return NULL;
}

/* ---- the file ---- */

static void write_head(FILE *out, const struct texts *texts)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
	fprintf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'\">\n", html_js_hash, html_css_hash);
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n"
	      "<meta name=\"generator\" content=\"cuflight " CUFLIGHT_VERSION "\">\n"
	      "<title>cuflight: ", out);
	packed_write_escaped(out, texts->title);
	fputs("</title>\n<style>", out);
	fwrite(html_css, 1, html_css_bytes, out);
	fputs("</style>\n</head>\n", out);
}

/* Without scripts, the sections of the long report follow the first screen. */
static void write_body(FILE *out, const struct texts *texts, const uint8_t *packed, size_t bytes)
{
	size_t first = strlen(texts->screen);

	if (strncmp(texts->full, texts->screen, first))
		first = 0;
	fputs("<body>\n<div id=\"cuflight-app\"></div>\n<pre id=\"cuflight-screen\">", out);
	packed_write_escaped(out, texts->screen);
	fputs("</pre>\n<noscript><pre>", out);
	packed_write_escaped(out, texts->full + first);
	fputs("</pre></noscript>\n"
	      "<script type=\"application/octet-stream\" id=\"cuflight-data\">", out);
	packed_write_base64(out, packed, bytes);
	fputs("</script>\n<script>", out);
	fwrite(html_js, 1, html_js_bytes, out);
	fputs("</script>\n</body>\n</html>\n", out);
}

/* Every character of the text may become an entity of six. */
static size_t room_for_data(const struct texts *texts)
{
	const size_t markup = 4096;
	size_t others = markup + html_js_bytes + html_css_bytes +
			6 * (strlen(texts->full) + strlen(texts->screen));

	return subtract_to_zero(HTML_BYTES_MOST, others);
}

bool html_has_page(void) { return html_js_bytes != 0; }

enum html_result html_report(FILE *out, const struct facts *facts, struct frames *frames,
			     const struct timeline *timeline, const char *operand)
{
	static const struct style style = { .utf8 = true, .columns = STYLE_COLUMNS };
	static const struct report_text_options options;
	const struct text text = { .facts = facts, .frames = frames, .style = &style,
				   .places = places_new(facts, frames), .options = &options };
	struct texts texts;
	uint32_t *rows = site_rows(timeline, text.places);
	uint8_t *packed = NULL;
	size_t bytes = 0;

	texts_make(&texts, facts, frames, operand);
	for (size_t i = 0; html_has_page() && !packed && i < sizeof fits / sizeof *fits; i++)
		packed = make_data(facts, &text, timeline, rows, &texts, &fits[i],
				   room_for_data(&texts), &bytes);
	if (packed) {
		write_head(out, &texts);
		write_body(out, &texts, packed, bytes);
	}
	free(packed);
	free(rows);
	texts_free(&texts);
	places_free(text.places);
	if (!html_has_page())
		return HTML_NO_PAGE;
	return bytes ? HTML_WRITTEN : HTML_TOO_LARGE;
}
