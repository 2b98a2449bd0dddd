/* SPDX-License-Identifier: Apache-2.0 */
/* The file, part by part: policy, text, data, script. */
#include "analysis/view/html/html_page.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/html/assets.h"
#include "analysis/view/html/data.h"
#include "analysis/view/html/packed.h"
#include "analysis/view/html/site_rows.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/json/report_json.h"

/* What everything but the data may need: text and markup. */
enum { TITLE_BYTES = 256, PLAIN = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE };

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

/* A text of any length, unlike json_text. */
static struct json_object *whole_text(const char *text)
{
	size_t bytes = 3 * strlen(text) + 1;
	char *clean = xalloc_bytes(bytes);
	struct json_object *value;

	clean_utf8(clean, bytes, text);
	value = json_object_new_string(clean);
	free(clean);
	return value;
}

static void add_texts(struct json_object *object, const struct texts *texts)
{
	char *markdown = NULL;

	json_add(object, "screen", whole_text(texts->screen));
	json_add(object, "text", whole_text(texts->full));
	if (asprintf(&markdown, "```\n%s```\n", texts->screen) >= 0)
		json_add(object, "markdown", whole_text(markdown));
	free(markdown);
}

static void add_run(struct json_object *object, const struct data *data)
{
	struct json_object *origin = json_object_new_object();
	char number[32];

	snprintf(number, sizeof number, "%llu", (unsigned long long)data->timeline->begin_ns);
	json_add_text(origin, "realtime_ns", number);
	json_add(object, "origin", origin);
	json_add_number(object, "duration_ns",
			data->timeline->end_ns - data->timeline->begin_ns);
	json_add_number(object, "moment", data->timeline->report);
	json_add(object, "focus", data_focus(data));
	json_add(object, "names", data_names());
	json_add(object, "holders", data_holders(data));
	json_add(object, "processes", data_processes(data));
	json_add(object, "devices", data_devices(data));
}

/* Everything but the document of the report. Tables of texts and frames are last: the others fill
 * them. */
static struct json_object *make_object(struct data *data, const struct texts *texts,
				       const struct fit *fit)
{
	struct json_object *object = json_object_new_object();

	json_add_number(object, "page", 1);
	json_add_text(object, "generator", "cuflight " CUFLIGHT_VERSION);
	json_add_text(object, "title", texts->title);
	json_add_number(object, "report_rows", fit->rows);
	add_texts(object, texts);
	add_run(object, data);
	json_add(object, "incidents", data_incidents(data));
	json_add(object, "moments", data_moments(data));
	json_add(object, "charts", data_charts(data));
	json_add(object, "sites", data_sites(data));
	json_add(object, "values", data_values(data));
	json_add(object, "blocks", data_blocks(data));
	json_add(object, "ages", data_ages(data));
	json_add(object, "lanes", data_lanes(data));
	json_add(object, "frames", tree_frames_json(&data->tree, &data->columns));
	json_add(object, "nodes", tree_nodes_json(&data->tree, &data->columns));
	json_add(object, "strings", strings_json(&data->strings));
	return object;
}

/* The object with the document of the report in it. NULL: it is too large. */
static char *write_json(const struct facts *facts, struct frames *frames,
			struct json_object *object, size_t rows, size_t *bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, bytes);
	bool whole = out != NULL;

	if (out) {
		fputs("{\"report\":", out);
		whole = report_json_rows(out, facts, frames, rows);
		fputc(',', out);
		fputs(json_object_to_json_string_ext(object, PLAIN) + 1, out);
		whole &= !fclose(out);
	}
	if (whole)
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
			     .blocks_most = fit->blocks, .rows = fit->rows };
	struct json_object *object;
	uint8_t *packed = NULL;
	size_t json_bytes;
	char *json;

	strings_init(&data.strings);
	tree_init(&data.tree);
	object = make_object(&data, texts, fit);
	json = write_json(facts, text->frames, object, fit->rows, &json_bytes);
	json_object_put(object);
	if (json)
		packed = packed_make(json, json_bytes, &data.columns, bytes);
	free(json);
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
