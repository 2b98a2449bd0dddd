/* SPDX-License-Identifier: Apache-2.0 */
/* Places, quantities, escapes and identities of a gate's findings. */
#include "analysis/view/commands/write_parts.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"

/* ---- places ---- */

static const char *below_root(const char *root, const char *file)
{
	size_t length = strlen(root);

	while (length && root[length - 1] == '/')
		length--;
	if (!length || strncmp(file, root, length) != 0 || file[length] != '/')
		return file;
	file += length;
	return file + strspn(file, "/");
}

struct gate_place gate_site_place(const struct gate_document *document,
				  const struct gate_site *site)
{
	struct gate_place place = { .line = 0 };

	if (!site || !site->file || !*site->file)
		return place;
	clean_terminal(place.file, sizeof place.file, below_root(document->root, site->file),
		       false);
	place.line = site->line;
	return place;
}

/* "cuflight.ini:3", as limits from a file have it. */
static struct gate_place origin_place(const struct gate_document *document, const char *origin)
{
	struct gate_place place = { .line = 0 };
	char *colon;

	clean_terminal(place.file, sizeof place.file, below_root(document->root, origin), false);
	colon = strrchr(place.file, ':');
	if (colon) {
		*colon = 0;
		place.line = (unsigned)strtoul(colon + 1, NULL, 10);
	}
	return place;
}

struct gate_place gate_finding_place(const struct gate_document *document,
				     const struct gate_finding *finding)
{
	struct gate_place place = { .line = 0 };

	for (size_t i = 0; i < finding->site_count && !*place.file; i++)
		if (!finding->sites[i].rule)
			place = gate_site_place(document, &finding->sites[i]);
	if (!*place.file)
		place = origin_place(document, finding->limit.origin);
	return place;
}

/* ---- texts ---- */

struct unit_text gate_quantity(const struct gate_measure *measure, uint64_t value)
{
	if (value == CUF_UNKNOWN || measure->unit == GATE_BYTES)
		return units_bytes(value);
	return units_count(value);
}

void gate_site_text(const struct gate_site *site, char *out, size_t bytes)
{
	char text[2 * GATE_TEXT_MAX];
	const char *function = site->function && *site->function ? site->function : "?";

	if (site->file && *site->file && site->line)
		snprintf(text, sizeof text, "%s (%s:%u)", function, path_base_name(site->file),
			 site->line);
	else if (site->module && *site->module)
		snprintf(text, sizeof text, "%s (%s)", function, path_base_name(site->module));
	else
		snprintf(text, sizeof text, "%s", function);
	clean_terminal(out, bytes, text, false);
}

void gate_site_sentence(const struct gate_finding *finding, const struct gate_site *site,
			char *out, size_t bytes)
{
	char where[GATE_TEXT_MAX], before[80] = "", blocks[80] = "", rule[200] = "";

	gate_site_text(site, where, sizeof where);
	if (site->bytes_before != CUF_UNKNOWN && site->bytes_before)
		snprintf(before, sizeof before, " (%s before)",
			 units_bytes(site->bytes_before).s);
	else if (site->bytes_before != CUF_UNKNOWN)
		snprintf(before, sizeof before, " (new)");
	if (site->count_now != CUF_UNKNOWN && finding->limit.measure->unit == GATE_BYTES)
		snprintf(blocks, sizeof blocks, " in %s block%s", units_count(site->count_now).s,
			 site->count_now == 1 ? "" : "s");
	if (site->rule)
		clean_terminal(rule, sizeof rule, site->rule, false);
	snprintf(out, bytes, "%s%s at %s%s%s%s", units_bytes(site->bytes_now).s, blocks, where,
		 before, *rule ? ", suppressed by " : "", rule);
}

size_t gate_count(const struct gate_result *result, enum gate_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < result->finding_count; i++)
		count += result->findings[i].status == status;
	return count;
}

void gate_headline(const struct gate_result *result, char *out, size_t bytes)
{
	size_t exceeded = gate_count(result, GATE_EXCEEDED);
	size_t unclear = gate_count(result, GATE_INCONCLUSIVE);
	size_t all = result->finding_count;

	if (exceeded)
		snprintf(out, bytes, "%zu of %zu limits exceeded", exceeded, all);
	else if (unclear)
		snprintf(out, bytes, "%zu of %zu limits could not be judged", unclear, all);
	else if (result->inconclusive_count)
		snprintf(out, bytes, "the run could not be judged");
	else
		snprintf(out, bytes, "all %zu limits kept", all);
}

/* ---- identity ---- */

static uint64_t add_to_hash(uint64_t hash, const char *text)
{
	enum { AFTER_EACH_TEXT = 0xff };
	const uint64_t fnv_prime = 0x100000001b3;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * fnv_prime;
	return (hash ^ AFTER_EACH_TEXT) * fnv_prime;
}

uint64_t gate_fingerprint(const struct gate_finding *finding, const struct gate_site *site)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	hash = add_to_hash(hash, finding->limit.measure->name);
	hash = add_to_hash(hash, finding->limit.phase ? finding->limit.phase : "");
	return add_to_hash(hash, site ? site->identity : finding->limit.text);
}

/* ---- escapes ---- */

size_t gate_character(const char *text, char out[8])
{
	size_t length = clean_character(text);

	snprintf(out, 8, "?");
	if (!length)
		return 1;
	memcpy(out, text, length);
	out[length] = 0;
	return length;
}

/* XML 1.0 has no way to write other control characters, U+FFFE and U+FFFF. */
static const char *xml_form(const char *character)
{
	switch ((unsigned char)*character) {
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	case '"': return "&quot;";
	case '\n': return "&#10;";
	case '\t': return "&#9;";
	case '\r': return "&#13;";
	}
	if ((unsigned char)*character < ' ' || !strcmp(character, "\xef\xbf\xbe") ||
	    !strcmp(character, "\xef\xbf\xbf"))
		return "?";
	return character;
}

void print_xml(FILE *out, const char *text)
{
	char character[8];

	for (; text && *text; fputs(xml_form(character), out))
		text += gate_character(text, character);
}

/* A character that begins, ends or separates something in Markdown or HTML. */
static bool is_markup(char c)
{
	return strchr("\\`*_{}[]()#+-.!|<>&~:\"'=@$^", c);
}

void print_markdown(FILE *out, const char *text)
{
	char character[8];

	while (text && *text) {
		text += gate_character(text, character);
		if ((unsigned char)*character < ' ' || *character == 0x7f)
			fputc(' ', out);
		else if (is_markup(*character))
			fprintf(out, "&#%d;", *character);
		else
			fputs(character, out);
	}
}

void print_json(FILE *out, struct json_object *document)
{
	enum { FORM = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE };

	fputs(json_object_to_json_string_ext(document, FORM), out);
	fputc('\n', out);
	json_object_put(document);
}
