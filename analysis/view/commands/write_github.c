/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workflow commands of GitHub: "::error file=F,line=N,title=T::MESSAGE". A step may annotate ten
 * times with each kind, so the tenth states how many more there are.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis/view/commands/write_parts.h"

enum { ANNOTATIONS_MAX = 10 };

static const char *const kinds[GATE_STATUS_MAX] = {
	[GATE_SUPPRESSED] = "notice",
	[GATE_INCONCLUSIVE] = "warning",
	[GATE_EXCEEDED] = "error",
};

/* Properties also end at a comma and a colon. */
static void print_escaped(FILE *out, const char *text, bool property)
{
	char character[8];

	while (*text) {
		text += gate_character(text, character);
		if (strchr(property ? "%\r\n:," : "%\r\n", *character))
			fprintf(out, "%%%02X", (unsigned char)*character);
		else if ((unsigned char)*character >= ' ')
			fputs(character, out);
	}
}

static void print_property(FILE *out, const char *name, const char *value, bool *first)
{
	fprintf(out, "%c%s=", *first ? ' ' : ',', name);
	print_escaped(out, value, true);
	*first = false;
}

static void print_command(FILE *out, const char *kind, const struct gate_place *place,
			  const char *title, const char *message)
{
	bool first = true;
	char line[16];

	fprintf(out, "::%s", kind);
	if (*place->file)
		print_property(out, "file", place->file, &first);
	if (*place->file && place->line) {
		snprintf(line, sizeof line, "%u", place->line);
		print_property(out, "line", line, &first);
	}
	print_property(out, "title", title, &first);
	fputs("::", out);
	print_escaped(out, message, false);
	fputc('\n', out);
}

/* The sentence, and the worst call sites as further lines of the same annotation. */
static void print_finding(const struct gate_document *document, FILE *out,
			  const struct gate_finding *finding)
{
	struct gate_place place = gate_finding_place(document, finding);
	char title[GATE_TEXT_MAX], site[GATE_TEXT_MAX], *message;
	size_t bytes;
	FILE *text = open_memstream(&message, &bytes);

	if (!text)
		return;
	fprintf(text, "%s", finding->message);
	for (size_t i = 0; i < finding->site_count && i < GATE_SITES_MAX; i++) {
		gate_site_sentence(finding, &finding->sites[i], site, sizeof site);
		fprintf(text, "\n%s", site);
	}
	fclose(text);
	snprintf(title, sizeof title, "cuflight: %s", finding->limit.text);
	print_command(out, kinds[finding->status], &place, title, message);
	free(message);
}

static void print_rest(FILE *out, const char *kind, size_t count)
{
	static const struct gate_place nowhere;
	char message[80];

	snprintf(message, sizeof message, "%zu more limits", count);
	print_command(out, kind, &nowhere, "cuflight", message);
}

/* All findings of one status, the worst first, at most `room` commands. */
static void print_status(const struct gate_document *document, FILE *out, enum gate_status status,
			 size_t room)
{
	const struct gate_result *result = document->result;
	size_t count = gate_count(result, status), printed = 0;
	size_t shown = count <= room ? count : room - 1;

	for (size_t i = 0; i < result->finding_count && printed < shown; i++) {
		if (result->findings[i].status != status)
			continue;
		print_finding(document, out, &result->findings[i]);
		printed++;
	}
	if (shown < count)
		print_rest(out, kinds[status], count - shown);
}

void write_github(const struct gate_document *document, FILE *out)
{
	static const struct gate_place nowhere;
	const struct gate_result *result = document->result;
	size_t whole = result->inconclusive_count;

	if (whole > ANNOTATIONS_MAX / 2)
		whole = ANNOTATIONS_MAX / 2;
	for (size_t i = 0; i < whole; i++)
		print_command(out, kinds[GATE_INCONCLUSIVE], &nowhere, "cuflight: inconclusive",
			      result->inconclusive[i]);
	print_status(document, out, GATE_EXCEEDED, ANNOTATIONS_MAX);
	print_status(document, out, GATE_INCONCLUSIVE, ANNOTATIONS_MAX - whole);
	print_status(document, out, GATE_SUPPRESSED, ANNOTATIONS_MAX);
}
