/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown for the summary of a job: one line, a table of limits, the call sites of those that were
 * exceeded. GitHub rejects summaries of 1 MiB, which ten call sites a limit cannot reach.
 */
#include "analysis/base/paths.h"
#include "analysis/view/commands/write_parts.h"

static void print_markdown_row(FILE *out, const struct gate_finding *finding)
{
	static const char *const marks[GATE_STATUS_MAX] = {
		"kept", "suppressed", "not judged", "**EXCEEDED**",
	};
	const struct gate_measure *measure = finding->limit.measure;
	char site[GATE_TEXT_MAX] = "";

	if (finding->site_count && finding->status != GATE_OK)
		gate_site_text(&finding->sites[0], site, sizeof site);
	fprintf(out, "| %s | ", marks[finding->status]);
	print_markdown(out, finding->limit.text);
	fprintf(out, " | %s", gate_quantity(measure, finding->observed.value).s);
	if (finding->suppressed_bytes)
		fprintf(out, ", %s suppressed",
			gate_quantity(measure, finding->suppressed_bytes).s);
	fputs(" | ", out);
	if (finding->baseline.runs)
		fputs(gate_quantity(measure, finding->baseline.median).s, out);
	fputs(" | ", out);
	print_markdown(out, site);
	fputs(" |\n", out);
}

static void print_table(FILE *out, const struct gate_result *result)
{
	fputs("| | limit | observed | baseline | worst call site |\n"
	      "|---|---|---:|---:|---|\n", out);
	for (size_t i = 0; i < result->finding_count; i++)
		print_markdown_row(out, &result->findings[i]);
}

/* A sentence and its call sites, as a list. */
static void print_details(FILE *out, const struct gate_finding *finding)
{
	char line[GATE_TEXT_MAX];

	fputs("\n**", out);
	print_markdown(out, finding->limit.text);
	fputs("**: ", out);
	print_markdown(out, finding->message);
	fputs("\n\n", out);
	for (size_t i = 0; i < finding->site_count && i < GATE_SITES_MAX; i++) {
		gate_site_sentence(finding, &finding->sites[i], line, sizeof line);
		fputs("* ", out);
		print_markdown(out, line);
		fputc('\n', out);
	}
}

static void print_sentences(FILE *out, const char *const *sentences, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fputs(i ? "* " : "\n* ", out);
		print_markdown(out, sentences[i]);
		fputc('\n', out);
	}
}

void write_markdown(const struct gate_document *document, FILE *out)
{
	const struct gate_result *result = document->result;
	char headline[GATE_TEXT_MAX];

	gate_headline(result, headline, sizeof headline);
	fprintf(out, "### cuflight: %s\n\n", headline);
	print_markdown(out, path_base_name(result->program));
	if (result->baseline) {
		fputs(", compared with ", out);
		print_markdown(out, path_base_name(result->baseline));
	}
	fputs("\n\n", out);
	if (result->finding_count)
		print_table(out, result);
	for (size_t i = 0; i < result->finding_count; i++)
		if (result->findings[i].status >= GATE_INCONCLUSIVE)
			print_details(out, &result->findings[i]);
	print_sentences(out, result->inconclusive, result->inconclusive_count);
	print_sentences(out, result->notes, result->note_count);
}
