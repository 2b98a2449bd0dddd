/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, thresholds, sources and advice of the causes, printed from the tables that judge. */
#include "analysis/cmd/help_causes.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include "analysis/explain/causes.h"
#include "analysis/view/text/flow.h"

enum { HELP_COLUMNS = 80, TERM_COLUMN = 8 };

/* The sentence of a term with its figures as words: "packing every hole would give PACKED"; "lower OPTION". */
static void plain_words(const char *words, char *out, size_t bytes)
{
	static const char option[] = "OPTION";
	size_t used = 0;
	bool figure = false;
	for (; *words && used + sizeof option < bytes; words++) {
		if (!strncmp(words, "{@", 2)) {
			memcpy(out + used, option, sizeof option - 1);
			used += sizeof option - 1;
			words += strcspn(words, "}");
		} else if (*words == '{' || *words == '}') {
			figure = *words == '{';
		} else {
			out[used++] = figure ? (char)toupper((unsigned char)*words) : *words;
		}
	}
	out[used] = 0;
}

static void term_words(const struct cause_term *term, char *out, size_t bytes)
{
	char words[512];
	plain_words(term_rows[term->term].words, words, sizeof words);
	if (term->threshold < 1e-6)
		snprintf(out, bytes, "%s (%s above 0)", words, term_rows[term->term].name);
	else
		snprintf(out, bytes, "%s%s (%s %s %g)", term->below ? "not so: " : "", words, term_rows[term->term].name, term->below ? "below" : "at least", term->threshold);
}

static void print_term(FILE *out, const struct cause_term *term, bool need)
{
	char words[640];
	int used = need ? fprintf(out, "  need") : fprintf(out, "  %+.2f", term->weight);
	fprintf(out, "%*s", TERM_COLUMN - used + 1, "");
	term_words(term, words, sizeof words);
	flow_text(out, words, TERM_COLUMN + 1, TERM_COLUMN + 1, HELP_COLUMNS);
}

static void print_advice(FILE *out, const char *id)
{
	struct cause_advice row;
	char words[512], line[600];
	bool any = false;
	for (size_t i = 0; cause_advice_row(i, &row); i++) {
		size_t bytes = strcspn(row.cause, "*");
		if (row.cause[bytes] ? strncmp(id, row.cause, bytes) : strcmp(id, row.cause))
			continue;
		if (!any)
			fputs("\nWhat to do, the first that its figures are known for:\n", out);
		any = true;
		plain_words(row.words, words, sizeof words);
		snprintf(line, sizeof line, "%s%s%s", row.framework, *row.framework ? ": " : "", words);
		fputs("  ", out);
		flow_text(out, line, 4, 2, HELP_COLUMNS);
	}
}

static void print_rule(FILE *out, const struct cause_rule *rule)
{
	if (*rule->about) {
		fprintf(out, "%s  %s\n\n", rule->id, rule->name);
		flow_text(out, rule->about, 0, 0, HELP_COLUMNS);
		fputs("\nFrom: ", out);
		flow_text(out, rule->source, 6, 6, HELP_COLUMNS);
	}
	fprintf(out, "\n%s, beginning at %.2f:\n", *rule->about ? "Rule" : "Or", rule->base);
	for (const struct cause_term *t = rule->needs; t < rule->needs + CAUSE_NEEDS && t->threshold > 0; t++)
		print_term(out, t, true);
	for (const struct cause_term *t = rule->terms; t < rule->terms + CAUSE_TERMS && t->threshold > 0; t++)
		print_term(out, t, false);
	if (*rule->settle) {
		fputs("  to be certain: ", out);
		flow_text(out, rule->settle, 17, 17, HELP_COLUMNS);
	}
}

static const char *const confidence[] = {
	"A need that does not hold rules the cause out; one that could not be seen (but the first, which must be) takes 0.7 of the score.",
	"The weights of what holds are added to the base; at most 0.97; lost, cut or overwritten events and unknown free memory multiply it.",
	"Where another cause comes within 0.15, half of the missing lead is taken off. Below 0.3 there is no verdict but \"inconclusive\".",
	"High is 0.8 and more, medium 0.5 and more, low the rest.",
};

static void print_list(FILE *out)
{
	const char *last = "";
	for (const struct cause_rule *r = cause_rules; r->id; r++) {
		if (strcmp(last, r->id) != 0)
			fprintf(out, "  %-10s %s\n", r->id, r->name);
		last = r->id;
	}
	fputs("\nConfidence:\n", out);
	for (size_t i = 0; i < sizeof confidence / sizeof *confidence; i++) {
		fputs("  ", out);
		flow_text(out, confidence[i], 2, 2, HELP_COLUMNS);
	}
	fputs("\n'cuflight help S6' says more about one.\n", out);
}

bool help_causes(FILE *out, const char *id)
{
	const struct cause_rule *exact = cause_named(id);
	const char *last = "";
	if (!strcmp(id, "causes")) {
		print_list(out);
		return true;
	}
	if (!exact)
		return false;
	for (const struct cause_rule *r = cause_rules; r->id; r++) {
		bool wanted = !strcasecmp(exact->id, id) ? !strcmp(r->id, exact->id) : !strncasecmp(r->id, id, strlen(id));
		if (!wanted)
			continue;
		if (*last && strcmp(last, r->id) != 0) {
			print_advice(out, last);
			fputc('\n', out);
		}
		print_rule(out, r);
		last = r->id;
	}
	print_advice(out, last);
	return true;
}

/* ---- the man page ---- */

static void mdoc_sentence(FILE *out, const char *before, const char *words, size_t bytes)
{
	char line[1024];
	size_t used = (size_t)snprintf(line, sizeof line, "%s", before);
	for (size_t i = 0; i < bytes && used + 4 < sizeof line; i++) {
		if (words[i] == '-' || words[i] == '\\')
			line[used++] = '\\';
		line[used++] = words[i] == '\\' ? 'e' : words[i];
	}
	line[used] = 0;
	flow_text(out, line, 0, 0, HELP_COLUMNS);
}

/* A sentence begins on a line of its own, as mdoc wants. */
static void mdoc_words(FILE *out, const char *before, const char *words)
{
	for (const char *end; (end = strstr(words, ". ")); words = end + 2, before = "")
		mdoc_sentence(out, before, words, (size_t)(end + 1 - words));
	mdoc_sentence(out, before, words, strlen(words));
}

static void mdoc_terms(FILE *out, const struct cause_rule *rule)
{
	char words[640], tag[32];
	fputs(".Bl -tag -width \"+0.00\" -compact\n", out);
	for (const struct cause_term *t = rule->needs; t < rule->needs + CAUSE_NEEDS && t->threshold > 0; t++) {
		term_words(t, words, sizeof words);
		fputs(".It need\n", out);
		mdoc_words(out, "", words);
	}
	for (const struct cause_term *t = rule->terms; t < rule->terms + CAUSE_TERMS && t->threshold > 0; t++) {
		term_words(t, words, sizeof words);
		snprintf(tag, sizeof tag, "%s%.2f", t->weight < 0 ? "\\-" : "+", fabs(t->weight));
		fprintf(out, ".It %s\n", tag);
		mdoc_words(out, "", words);
	}
	fputs(".El\n", out);
}

void help_causes_mdoc(FILE *out)
{
	fputs(".Sh CONFIDENCE\n", out);
	for (size_t i = 0; i < sizeof confidence / sizeof *confidence; i++)
		mdoc_words(out, "", confidence[i]);
	fputs(".Sh CAUSES\n", out);
	for (const struct cause_rule *r = cause_rules; r->id; r++) {
		if (*r->about) {
			fprintf(out, ".Ss %s: %s\n", r->id, r->name);
			mdoc_words(out, "", r->about);
			fputs(".Pp\n", out);
			mdoc_words(out, "From: ", r->source);
			fputs(".Pp\n", out);
			fprintf(out, "The rule begins at %.2f:\n", r->base);
		} else {
			fprintf(out, ".Pp\nOr, beginning at %.2f:\n", r->base);
		}
		mdoc_terms(out, r);
	}
	fputs(".Sh FIGURES\n.Bl -tag -width \"CONTRIBUTION\" -compact\n", out);
	for (enum figure f = 0; f < FIGURE_MAX; f++) {
		char name[64];
		plain_words(figure_rows[f].name, name, sizeof name);
		for (char *c = name; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		fprintf(out, ".It %s\n", name);
		mdoc_words(out, "", figure_rows[f].what);
	}
	fputs(".El\n", out);
}
