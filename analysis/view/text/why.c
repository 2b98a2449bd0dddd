/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Why": all evidence for and against the cause, the second guess, and the other things
 * that would help.
 */
#include <stdio.h>
#include <string.h>
#include "analysis/view/text/sections.h"

/* Evidence against the cause is printed with the same weight: the reader decides. */
static void print_evidence(const struct text *text, const struct fact_evidence *line)
{
	const char *between;
	char where[512] = "";
	if (line->stack.depth)
		text_place(text, &line->stack, text->style->columns - TEXT_LABEL, where,
			   sizeof where);
	between = text_if(*where, ": ");
	if (line->against)
		text_item(text, STYLE_WARN, "against", "%s%s%s", line->text, between, where);
	else
		text_item(text, STYLE_PLAIN, "evidence", "%s%s%s", line->text, between, where);
}

/* The first fix is on the first screen already. */
void section_why(const struct text *text)
{
	const struct fact_cause *cause = text->facts->cause;
	if (!cause)
		return;
	text_section(text, "Why");
	if (*cause->summary)
		text_item(text, STYLE_PLAIN, "in short", "%s", cause->summary);
	for (size_t i = 0; i < cause->evidence_count; i++)
		print_evidence(text, &cause->evidence[i]);
	for (size_t i = 0; i < cause->counterfactual_count; i++)
		text_item(text, STYLE_PLAIN, text_label("what if", i), "%s",
			  cause->counterfactual[i].text);
	for (size_t i = 1; i < cause->fix_count; i++)
		text_item(text, STYLE_GOOD, text_label("other fixes", i - 1), "%s",
			  cause->fixes[i].text);
	if (cause->runner_up_id)
		text_item(text, STYLE_PLAIN, "second guess", "%s (%s, %s confidence)",
			  cause->runner_up_name, cause->runner_up_name_id,
			  text_confidence(cause->runner_up_confidence));
	if (cause->discriminator && *cause->discriminator)
		text_item(text, STYLE_PLAIN, "difference", "%s", cause->discriminator);
	for (size_t i = 0; i < cause->lack_count; i++)
		text_item(text, STYLE_WARN, text_label("missing data", i), "%s", cause->lacks[i]);
}
