/* SPDX-License-Identifier: Apache-2.0 */
/* Prose, lists and rules of causes. Each cause may have several rules; the first one names it. */
#include <string.h>
#include <strings.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/suggest.h"
#include "analysis/cmd/help.h"
#include "analysis/explain/cause_guide.h"
#include "analysis/base/terminal.h"

enum { HELP_COLUMNS = 80, PROSE_INDENT = 2, TEST_COLUMN = 9, CAUSES_MAX = 64, NAME_COLUMN = 31 };

const char *const help_confidence[] = {
	"A refused request for device memory is decided by a budget: which of the things that "
	"could be taken away would have let the request fit, and for how long. Of those that last "
	"longest, defects come before what is configured, and that before what the program is "
	"for. The rules only name the answer.",
	"The decision is made again at the other end of each doubtful figure, and with each row "
	"being what else it could be. The same answer everywhere is high, two answers are medium.",
	"Of the host a rule has requirements, a base, and weights.",
	"A requirement that is known not to hold rules the cause out. The first requirement must "
	"be known. Each of the other requirements that is unknown multiplies the score by 0.7.",
	"The score is the base plus the weights of all signs that hold. It is at most 0.97.",
	"Dropped, overwritten or missing events and unknown free memory lower the score.",
	"If the runner-up is within 0.15, half of (0.15 - lead) is subtracted.",
	"Below 0.3 the report names no cause. Confidence is high from 0.8, medium from 0.5, and "
	"low below.",
	NULL,
};

/* ---- names ---- */

/* Rules of one cause are next to each other in the table. NULL behind the last cause. */
const struct cause_rule *help_cause_at(size_t index)
{
	const char *last = "";

	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		if (strcmp(last, rule->id) != 0 && index-- == 0)
			return rule;
		last = rule->id;
	}
	return NULL;
}

/* Case does not matter to people who type. */
static bool begins_with(const char *text, const char *start)
{
	return !strncasecmp(text, start, strlen(start));
}

/* "leak" is the beginning of a word of "gpu-leak". */
static bool has_word(const char *name_id, const char *start)
{
	for (const char *hyphen = strchr(name_id, '-'); hyphen; hyphen = strchr(hyphen + 1, '-'))
		if (begins_with(hyphen + 1, start))
			return true;
	return false;
}

/* How well a name fits: an exact name hides the rest, a beginning hides words inside. */
enum fit { FIT_NONE, FIT_WORD, FIT_BEGINNING, FIT_EXACT };

static enum fit fit_of(const struct cause_rule *rule, const char *name)
{
	if (!strcasecmp(rule->name_id, name) || !strcasecmp(rule->id, name))
		return FIT_EXACT;
	if (begins_with(rule->name_id, name) || begins_with(rule->id, name))
		return FIT_BEGINNING;
	return has_word(rule->name_id, name) ? FIT_WORD : FIT_NONE;
}

/* The causes that a name fits best; returns their number. A better fit discards what was found
 * before, so an exact name is the only result. */
static size_t find_causes(const char *name, const struct cause_rule **found)
{
	enum fit best = FIT_WORD;
	const struct cause_rule *rule;
	size_t count = 0;

	if (!*name)
		return 0;
	for (size_t i = 0; (rule = help_cause_at(i)); i++) {
		enum fit fit = fit_of(rule, name);
		if (fit < best)
			continue;
		if (fit > best)
			count = 0;
		best = fit;
		if (count < CAUSES_MAX)
			found[count++] = rule;
	}
	return count;
}

/* The nearest first word of a name: "fragmentation" is the topic of several causes. */
static const char *nearest_word(const char *typed)
{
	static char words[CAUSES_MAX][32];
	const char *names[CAUSES_MAX] = { NULL };
	const struct cause_rule *rule;
	size_t count = 0;

	for (; count < CAUSES_MAX && (rule = help_cause_at(count)); count++) {
		snprintf(words[count], sizeof words[count], "%.*s",
			 (int)strcspn(rule->name_id, "-"), rule->name_id);
		names[count] = words[count];
	}
	return suggest_nearest(typed, names, count);
}

/* The cause, or the list of all, that the user probably meant. */
const char *help_causes_nearest(const char *typed)
{
	/* words that people type for "why is there no memory" */
	static const char *const general[] = {
		"oom", "out-of-memory", "memory", "cause", "cuda", "error", "why",
	};
	const char *names[CAUSES_MAX], *near;
	size_t count = 0;

	for (size_t i = 0; i < sizeof general / sizeof *general; i++)
		if (!strcasecmp(general[i], typed))
			return "causes";
	for (; count < CAUSES_MAX && help_cause_at(count); count++)
		names[count] = help_cause_at(count)->name_id;
	near = suggest_nearest(typed, names, count);
	return near ? near : nearest_word(typed);
}

bool help_causes_mentioning(const char *word, char *out, size_t bytes)
{
	struct help_advice advice;
	const struct cause_rule *rule;
	size_t used = 0;

	*out = 0;
	for (size_t i = 0; strlen(word) > 2 && (rule = help_cause_at(i)); i++) {
		const struct cause_guide *guide = cause_guide_find(rule->name_id);
		bool has = strcasestr(rule->name, word) ||
			   strcasestr(help_cause_about(rule->id), word) ||
			   (guide && (strcasestr(guide->recognise, word) ||
				      strcasestr(guide->example, word)));

		for (size_t j = 0; !has && help_cause_advice(rule->id, j, &advice); j++)
			has = strcasestr(advice.words, word) || strcasestr(advice.framework, word);
		if (has && used < bytes)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s",
						 used ? ", " : "", rule->name_id);
	}
	return used;
}

/* ---- advice ---- */

/* A program that never ran: sentences of the tables name its figures. */
static const struct evidence *example(void)
{
	static struct evidence evidence;
	static const struct { enum metric metric; uint64_t value; } rows[] = {
		{ METRIC_step, 3 << 19 },	  { METRIC_last, 3ull << 29 },
		{ METRIC_steps_fit, 1000 },	  { METRIC_left_least, 240 },
		{ METRIC_left_most, 420 },	  { METRIC_fraction_fits, 80 },
		{ METRIC_slots_fit, 4 },	  { METRIC_together_fit, 4 },
		{ METRIC_context, 32768 },	  { METRIC_context_fits, 8192 },
		{ METRIC_heap_fits, 1024 },	  { METRIC_host_fewer, 5 },
		{ METRIC_each_request, 16 << 20 }, { METRIC_host_each_request, 16 << 20 },
		{ METRIC_shortfall, 512 << 20 },  { METRIC_kv_fits, 1 << 30 },
	};
	static const uint64_t usual[] = {
		[UNIT_BYTES] = 2ull << 30, [UNIT_COUNT] = 8,	[UNIT_PERCENT] = 50,
		[UNIT_SECONDS] = 300,	   [UNIT_SETTING] = 8,	[UNIT_FRACTION] = 90,
		[UNIT_BYTES_PER_SECOND] = 1 << 20,
	};

	for (enum metric m = 0; m < METRIC_MAX; m++) {
		evidence.metrics[m] = usual[metric_rows[m].unit];
		evidence.options[m] = "the setting";
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		evidence.metrics[rows[i].metric] = rows[i].value;
	evidence.options[METRIC_sibling] = "another process";
	evidence.options[METRIC_neighbour] = "another process";
	evidence.options[METRIC_process_limit] = evidence.options[METRIC_process_asked] =
		evidence.options[METRIC_process_held] =
			"ulimit -v or -d, or LimitAS= or LimitDATA= of its service";
	return &evidence;
}

static void with_example(const char *words, char *out, size_t bytes)
{
	struct arena *arena = arena_new();

	snprintf(out, bytes, "%s", evidence_words(example(), arena, words));
	arena_free(arena);
}

/*
 * Rows of one kind give the same advice, with fewer and fewer figures. They change the same
 * setting; if they change none, they begin with the same word.
 */
static bool is_same_kind(const struct cause_advice *row, const struct cause_advice *other)
{
	size_t word = strcspn(row->words, " ,:") + 1;

	if (strcmp(row->framework, other->framework) != 0)
		return false;
	if (row->knob && other->knob)
		return !strcmp(row->knob, other->knob);
	return !row->knob && !other->knob && !strncmp(row->words, other->words, word);
}

/* A later row of the same kind has fewer figures: help prints that one. */
static bool has_plainer_row(const char *id, const struct cause_advice *row, size_t after)
{
	struct cause_advice other;

	for (size_t i = after + 1; cause_advice_row(i, &other); i++)
		if (cause_fits(id, other.cause) && is_same_kind(row, &other))
			return true;
	return false;
}

/* The index-th piece of advice. False behind the last one. */
bool help_cause_advice(const char *id, size_t index, struct help_advice *out)
{
	struct cause_advice row;

	for (size_t i = 0; cause_advice_row(i, &row); i++) {
		if (!cause_fits(id, row.cause) || has_plainer_row(id, &row, i) || index-- > 0)
			continue;
		out->framework = row.framework;
		with_example(row.words, out->words, sizeof out->words);
		return true;
	}
	return false;
}

/* ---- prose ---- */

/* The first rule of a cause that has a text has it for all. */
const char *help_cause_about(const char *id)
{
	for (const struct cause_rule *rule = cause_rules; rule->id; rule++)
		if (!strcmp(rule->id, id) && *rule->about)
			return rule->about;
	return "";
}

/* A title and an indented paragraph; nothing when the tables have no text. */
static void print_section(FILE *out, const char *title, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "\n%s\n%*s", title, PROSE_INDENT, "");
	flow_text(out, text, PROSE_INDENT, PROSE_INDENT, HELP_COLUMNS);
}

/* One line of the advice. */
static void print_cause_row(FILE *out, const struct help_advice *advice)
{
	char line[700];

	snprintf(line, sizeof line, "%s%s%s", advice->framework, *advice->framework ? ": " : "",
		 advice->words);
	fputs("  - ", out);
	flow_text(out, line, 2 * PROSE_INDENT, 2 * PROSE_INDENT, HELP_COLUMNS);
}

/* What helps any program comes first, then what is of one framework. No title without advice. */
static void print_advice(FILE *out, const char *id)
{
	struct help_advice advice;

	if (help_cause_advice(id, 0, &advice))
		fputs("\nHow to fix it (figures are examples; a report has yours)\n", out);
	for (size_t i = 0; help_cause_advice(id, i, &advice); i++)
		if (!*advice.framework)
			print_cause_row(out, &advice);
	for (size_t i = 0; help_cause_advice(id, i, &advice); i++)
		if (*advice.framework)
			print_cause_row(out, &advice);
}

/* What it is, how to recognise it, an example, how to fix it; no figures, no weights. */
static void print_cause(FILE *out, const struct cause_rule *rule)
{
	const struct cause_guide *guide = cause_guide_find(rule->name_id);

	fprintf(out, "%s: %s\n", rule->name_id, rule->name);
	print_section(out, "What it is", help_cause_about(rule->id));
	if (guide) {
		print_section(out, "How to recognise it", guide->recognise);
		print_section(out, "Example", guide->example);
	}
	print_advice(out, rule->id);
	fprintf(out, "\n'cuflight help --rule %s' prints how it is decided.\n", rule->name_id);
}

/* "  name-id    a few words" */
static void print_list(FILE *out, const struct cause_rule *const *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "  %-*s", NAME_COLUMN - PROSE_INDENT, rules[i]->name_id);
		flow_text(out, rules[i]->name, NAME_COLUMN, NAME_COLUMN, HELP_COLUMNS);
	}
}

/* False when no cause has the name. Several causes are listed, a single one is explained. */
bool help_causes(FILE *out, const char *name)
{
	const struct cause_rule *found[CAUSES_MAX];
	size_t count = 0;

	if (!strcmp(name, "causes")) {
		while (count < CAUSES_MAX && (found[count] = help_cause_at(count)))
			count++;
		fputs("Why memory ran out, as reports name it:\n\n", out);
	} else {
		count = find_causes(name, found);
		if (count == 1)
			print_cause(out, found[0]);
		if (count < 2)
			return count == 1;
		fprintf(out, "Causes that match '%s':\n\n", name);
	}
	print_list(out, found, count);
	fputs("\n'cuflight help CAUSE' explains one.\n", out);
	return true;
}

/* ---- rules ---- */

/* The sentence of a signal for the side that the rule tests, and the comparison itself. */
static void describe_test(const struct cause_test *test, char *out, size_t bytes)
{
	const struct signal_row *row = &signal_rows[test->signal];
	char words[512];

	with_example(test->below ? row->words_not : row->words, words, sizeof words);
	if (test->threshold < 1e-6)
		snprintf(out, bytes, "%s (%s above 0)", words, row->name);
	else if (test->below)
		snprintf(out, bytes, "%s (%s below %g)", words, row->name, test->threshold);
	else
		snprintf(out, bytes, "%s (%s at least %g)", words, row->name, test->threshold);
}

/* Requirements have no weight; of the host everything else adds its weight when it holds. */
static void print_test(FILE *out, const struct cause_test *test)
{
	char words[640];
	int used;

	if (!test->weight)
		used = fprintf(out, "  needs");
	else if (test->weight == CAUSE_SHOWN)
		used = fprintf(out, "  shown");
	else
		used = fprintf(out, "  %+.2f", test->weight);
	fprintf(out, "%*s", TEST_COLUMN - used, "");
	describe_test(test, words, sizeof words);
	flow_text(out, words, TEST_COLUMN, TEST_COLUMN, HELP_COLUMNS);
}

static bool is_test(const struct cause_test *test)
{
	return test->threshold > 0;
}

/* Requirements first, then weights, then where both come from. */
static void print_rule(FILE *out, const struct cause_rule *rule)
{
	if (rule->base > 0)
		fprintf(out, "\nBase %.2f\n", rule->base);
	else
		fputs("\nNamed if the budget blames it\n", out);
	for (size_t i = 0; i < CAUSE_NEEDS && is_test(&rule->needs[i]); i++)
		print_test(out, &rule->needs[i]);
	for (size_t i = 0; i < CAUSE_TESTS && is_test(&rule->tests[i]); i++)
		print_test(out, &rule->tests[i]);
	if (*rule->source) {
		fputs("  Source: ", out);
		flow_text(out, rule->source, 10, 10, HELP_COLUMNS);
	}
	if (*rule->would_confirm) {
		fputs("  To confirm: ", out);
		flow_text(out, rule->would_confirm, 14, 14, HELP_COLUMNS);
	}
}

bool help_cause_rules(FILE *out, const char *name)
{
	const struct cause_rule *found[CAUSES_MAX];
	size_t count = find_causes(name, found);

	for (size_t i = 0; i < count; i++) {
		if (i)
			fputc('\n', out);
		fprintf(out, "%s (%s): %s\n", found[i]->name_id, found[i]->id, found[i]->name);
		for (const struct cause_rule *rule = cause_rules; rule->id; rule++)
			if (!strcmp(rule->id, found[i]->id))
				print_rule(out, rule);
	}
	if (!count)
		return false;
	fputs("\nConfidence\n", out);
	for (size_t i = 0; help_confidence[i]; i++) {
		fputs("  ", out);
		flow_text(out, help_confidence[i], PROSE_INDENT, PROSE_INDENT, HELP_COLUMNS);
	}
	return true;
}
