/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict in words: three short parts on the first screen, all that speaks for and against it in a section. */
#include "analysis/view/text/text.h"

#include <stdio.h>
#include <string.h>

static const char *sure(double confidence) { return confidence >= 0.8 ? "high" : confidence >= 0.5 ? "medium" : "low"; }

static void name_of(const struct fact_cause *cause, char *out, size_t bytes)
{
	if (*cause->id)
		snprintf(out, bytes, "%s (%s, confidence %s)", cause->name, cause->id, sure(cause->confidence));
	else
		snprintf(out, bytes, "inconclusive%s%s", cause->runner_up_id ? ", perhaps " : "", cause->runner_up_id ? cause->runner_up_name : "");
}

/* Where in their code, when neither the failing call nor a line of LEAKS says it. */
static unsigned where_line(const struct text *text, const struct fact_cause *cause)
{
	char words[TEXT_LINE_BYTES];
	if (!cause->site.depth || text_count_leaks(text->facts))
		return 0;
	frames_line(text->frames, &cause->site, words, sizeof words);
	return text_flow(text, STYLE_HEAD, "WHERE", 1, words);
}

unsigned text_cause_lines(const struct text *text, const struct fact_cause *cause)
{
	char words[TEXT_LINE_BYTES];
	unsigned lines = 1;
	if (!cause)
		return 0;
	name_of(cause, words, sizeof words);
	text_line(text, STYLE_BAD, "CAUSE", "%s", words);
	lines += text_flow(text, STYLE_HEAD, "WHY", 2, cause->summary);
	lines += where_line(text, cause);
	if (cause->fix_count)
		lines += text_flow(text, STYLE_GOOD, "DO", 2, cause->fixes[0].text);
	else if (!*cause->id && cause->lack_count)
		lines += text_flow(text, STYLE_WARN, "LACKING", 2, cause->lacks[0]);
	return lines;
}

static void events_of(const struct fact_evidence *line, char *out, size_t bytes)
{
	size_t used = 0;
	*out = 0;
	for (size_t i = 0; i < line->seq_count && used < bytes; i++) {
		int length = snprintf(out + used, bytes - used, "%s%llu", i ? ", " : line->seq_count > 1 ? " [events " : " [event ",
				      (unsigned long long)line->seqs[i]);
		used += length > 0 ? (size_t)length : 0;
	}
	if (used && used + 1 < bytes)
		strcpy(out + used, "]");
}

static void evidence_line(const struct text *text, const struct fact_evidence *line)
{
	char words[TEXT_LINE_BYTES], events[128], where[512] = "";
	events_of(line, events, sizeof events);
	if (line->stack.depth)
		frames_line(text->frames, &line->stack, where, sizeof where);
	snprintf(words, sizeof words, "%s%s%s%s", line->text, *where ? ": " : "", where, events);
	text_flow(text, line->against ? STYLE_WARN : STYLE_PLAIN, line->against ? "against" : "for", 3, words);
}

static void one(const struct text *text, const struct fact_cause *cause)
{
	char words[TEXT_LINE_BYTES];
	name_of(cause, words, sizeof words);
	text_flow(text, STYLE_BAD, "cause", 2, words);
	text_flow(text, STYLE_PLAIN, "why", 3, cause->summary);
	for (size_t i = 0; i < cause->evidence_count; i++)
		evidence_line(text, &cause->evidence[i]);
	for (size_t i = 0; i < cause->fix_count; i++)
		text_flow(text, STYLE_GOOD, "do", 3, cause->fixes[i].text);
	if (cause->runner_up_id) {
		snprintf(words, sizeof words, "%s (%s, confidence %s)", cause->runner_up_name, cause->runner_up_id, sure(cause->runner_up_confidence));
		text_flow(text, STYLE_PLAIN, "else", 2, words);
	}
	if (*cause->discriminator) {
		snprintf(words, sizeof words, "%s", cause->discriminator);
		text_flow(text, STYLE_PLAIN, "apart by", 3, words);
	}
	for (size_t i = 0; i < cause->lack_count; i++)
		text_flow(text, STYLE_WARN, "lacking", 2, cause->lacks[i]);
	if (*cause->id)
		text_line(text, STYLE_PLAIN, "rule", "cuflight help %s", cause->id);
}

void text_cause(const struct text *text)
{
	if (!text->facts->cause)
		return;
	text_section(text, "CAUSE");
	one(text, text->facts->cause);
}
