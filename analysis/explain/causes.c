/* SPDX-License-Identifier: Apache-2.0 */
/* Scores the rules on a vector and words the verdict. */
#include "analysis/explain/causes.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { LINES_MAX = 8 };

static bool is_term(const struct cause_term *term)
{
	return term->threshold > 0;
}
static bool is_seen(const struct cause_term *term, const struct evidence *evidence)
{
	return !isnan(evidence->terms[term->term].value);
}
static bool holds(const struct cause_term *term, const struct evidence *evidence)
{
	double value = evidence->terms[term->term].value;
	return term->below ? value < term->threshold : value >= term->threshold; /* NAN: neither */
}

static bool begins_with(const char *text, const char *start)
{
	return *start && !strncasecmp(text, start, strlen(start));
}

const struct cause_rule *cause_named(const char *name)
{
	const struct cause_rule *begins = NULL;
	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		if (!strcasecmp(rule->id, name) || !strcasecmp(rule->name_id, name))
			return rule;
		if (!begins && (begins_with(rule->id, name) || begins_with(rule->name_id, name)))
			begins = rule;
	}
	return begins;
}

static unsigned scope_of(const struct evidence *evidence)
{
	if (!evidence->incident)
		return AT_END;
	return evidence->incident->kind == CUF_KIND_HOST ? AT_REFUSAL : AT_FAILURE;
}

double cause_score(const struct cause_rule *rule, const struct evidence *evidence)
{
	double score = rule->base, factor = evidence->quality;
	if (!(rule->scope & scope_of(evidence)))
		return 0;
	for (const struct cause_term *term = rule->needs;
	     term < rule->needs + CAUSE_NEEDS && is_term(term); term++) {
		if (is_seen(term, evidence) ? !holds(term, evidence) : term == rule->needs)
			return 0;
		factor *= is_seen(term, evidence) ? 1 : CAUSE_UNSEEN;
	}
	for (const struct cause_term *term = rule->terms;
	     term < rule->terms + CAUSE_TERMS && is_term(term); term++)
		score += holds(term, evidence) ? term->weight : 0;
	score *= factor;
	return score < 0 ? 0 : score > CAUSE_MOST ? CAUSE_MOST : score;
}

struct ranked {
	const struct cause_rule *best, *next;
	double best_score, next_score;
};

/* The two best of different names; of equal ones the earlier in the table. */
static struct ranked rank(const struct evidence *evidence)
{
	struct ranked ranked = { 0 };
	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		double score = cause_score(rule, evidence);
		if (score > ranked.best_score) {
			if (ranked.best && strcmp(ranked.best->id, rule->id) != 0) {
				ranked.next = ranked.best;
				ranked.next_score = ranked.best_score;
			}
			ranked.best = rule;
			ranked.best_score = score;
		} else if (score > ranked.next_score && strcmp(ranked.best->id, rule->id) != 0) {
			ranked.next = rule;
			ranked.next_score = score;
		}
	}
	return ranked;
}

/* ---- words ---- */

/* The last sample may be of the exit itself, after the program's end. */
static uint64_t last_look_ns(const struct fact_process *process)
{
	uint64_t sampled_ns = process->timeline_count
				      ? process->timeline[process->timeline_count - 1].time_ns
				      : process->end_ns;
	return sampled_ns < process->end_ns ? sampled_ns : process->end_ns;
}

static void add_line(struct build *build, const struct evidence *evidence, enum term term,
		     bool against, struct fact_evidence *lines, size_t *count)
{
	const struct evidence_term *t = &evidence->terms[term];
	const struct fact_process *process = &build->facts->processes[evidence->process];
	struct evidence_term shown = *t;
	const char *words = evidence_words(evidence, build->arena, term_rows[term].words);
	struct fact_evidence *line = &lines[*count];
	if (!words || *count == LINES_MAX)
		return;
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(lines[i].text, words))
			return;
	/* where nothing better shows it, the failure itself does, or the last sample */
	if (!t->seq_count && evidence->incident)
		shown = (struct evidence_term){ .seqs = { evidence->incident->seq },
						.seq_count = 1,
						.time_ns = CUF_UNKNOWN,
						.stack = t->stack };
	else if (!t->seq_count && t->time_ns == CUF_UNKNOWN)
		shown.time_ns = last_look_ns(process);
	t = &shown;
	*line = (struct fact_evidence){ .text = words,
					.against = against,
					.process = evidence->process,
					.seq_count = t->seq_count,
					.time_ns = t->seq_count ? CUF_UNKNOWN : t->time_ns };
	memcpy(line->seqs, t->seqs, sizeof line->seqs);
	line->stack = (struct fact_stack){ .process = t->stack ? evidence->process : FACT_NONE,
					   .id = t->stack };
	if (t->stack)
		stack_fill(build, &line->stack, evidence->incident ? 0 : CUF_UNKNOWN);
	++*count;
}

/* The heaviest term that holds and was not told yet. */
static const struct cause_term *heaviest(const struct cause_rule *rule,
					 const struct evidence *evidence, bool against,
					 const bool *told)
{
	const struct cause_term *best = NULL;
	for (const struct cause_term *term = rule->terms;
	     term < rule->terms + CAUSE_TERMS && is_term(term); term++)
		if (!told[term - rule->terms] && holds(term, evidence) &&
		    (term->weight < 0) == against &&
		    (!best || fabs(term->weight) > fabs(best->weight)))
			best = term;
	return best;
}

/* A term that is a comparison from below reads as its opposite; those sentences are left out. */
static void add_lines(struct build *build, const struct cause_rule *rule,
		      const struct evidence *evidence, struct fact_evidence *lines, size_t *count)
{
	bool told[CAUSE_TERMS] = { false };
	const struct cause_term *term;
	for (term = rule->needs; term < rule->needs + CAUSE_NEEDS && is_term(term); term++)
		if (!term->below && holds(term, evidence))
			add_line(build, evidence, term->term, false, lines, count);
	for (int against = 0; against < 2; against++)
		while ((term = heaviest(rule, evidence, against, told))) {
			told[term - rule->terms] = true;
			if (!term->below)
				add_line(build, evidence, term->term, against, lines, count);
		}
	if (strncmp(rule->id, "S6", 2) != 0 && evidence->figures[FIG_contribution] != CUF_UNKNOWN &&
	    evidence->figures[FIG_contribution] >= 1)
		add_line(build, evidence, TERM_contribution, false, lines, count);
	if (evidence->terms[TERM_imbalance].value >= 0.3)
		add_line(build, evidence, TERM_imbalance, false, lines, count);
}

static const char *summary_of(struct build *build, const struct cause_rule *rule,
			      const struct evidence *evidence)
{
	for (size_t i = 0; i < 3 && rule->summaries[i]; i++) {
		const char *words = evidence_words(evidence, build->arena, rule->summaries[i]);
		if (words)
			return words;
	}
	return rule->name;
}

static double weight_in(const struct cause_rule *rule, enum term term)
{
	for (const struct cause_term *test = rule->needs;
	     test < rule->needs + CAUSE_NEEDS && is_term(test); test++)
		if (test->term == term && !test->below)
			return 0.5;
	for (const struct cause_term *test = rule->terms;
	     test < rule->terms + CAUSE_TERMS && is_term(test); test++)
		if (test->term == term)
			return test->weight;
	return 0;
}

/* The term that holds and weighs most for one and not for the other; else what would settle it. */
static const char *separates(struct build *build, const struct ranked *ranked,
			     const struct evidence *evidence)
{
	enum term best = TERM_MAX;
	double most = 0.04;
	const char *words;
	if (!ranked->next)
		return "";
	for (enum term t = 0; t < TERM_MAX; t++) {
		double difference = weight_in(ranked->best, t) - weight_in(ranked->next, t);
		const struct cause_term now = { t, false, 1e-9, 0 };
		if (holds(&now, evidence) && difference > most &&
		    (words = evidence_words(evidence, build->arena, term_rows[t].words))) {
			most = difference;
			best = t;
		}
	}
	words = best < TERM_MAX ? evidence_words(evidence, build->arena, term_rows[best].words)
				: NULL;
	if (!*ranked->best->settle || ranked->best_score - ranked->next_score >= 2 * CAUSE_LEAD)
		return words ? words : "";
	return arena_format(build->arena, "%s%swhat would settle it: %s", words ? words : "",
			    words ? "; " : "", ranked->best->settle);
}

static const struct fact_cause *inconclusive(struct build *build, const struct ranked *ranked,
					     const struct evidence *evidence)
{
	struct fact_cause *cause = arena_zeroed(build->arena, 1, sizeof *cause);
	*cause = (struct fact_cause){ .id = "",
				      .name_id = "",
				      .name = "inconclusive",
				      .summary = "what was recorded does not tell why",
				      .confidence = 0,
				      .separates = "",
				      .lacks = evidence->lacks,
				      .lack_count = evidence->lack_count,
				      .process = evidence->process,
				      .device = evidence->device };
	if (ranked->best) {
		cause->runner_up_id = ranked->best->id;
		cause->runner_up_name_id = ranked->best->name_id;
		cause->runner_up_name = ranked->best->name;
		cause->runner_up_confidence = ranked->best_score;
		cause->separates = arena_format(build->arena, "what would settle it: %s",
						*ranked->best->settle ? ranked->best->settle
								      : "a complete recording");
	}
	return cause;
}

const struct fact_cause *cause_judge(struct build *build, const struct evidence *evidence)
{
	struct ranked ranked = rank(evidence);
	struct fact_evidence *lines;
	struct fact_cause *cause;
	double lead = ranked.best_score - ranked.next_score;
	if (!ranked.best && !evidence->incident)
		return NULL;
	if (!ranked.best || ranked.best_score < CAUSE_LEAST)
		return inconclusive(build, &ranked, evidence);
	cause = arena_zeroed(build->arena, 1, sizeof *cause);
	lines = arena_zeroed(build->arena, LINES_MAX, sizeof *lines);
	*cause = (struct fact_cause){ .id = ranked.best->id,
				      .name_id = ranked.best->name_id,
				      .name = ranked.best->name,
				      .summary = summary_of(build, ranked.best, evidence),
				      .confidence = ranked.next && lead < CAUSE_LEAD
							    ? ranked.best_score -
								      (CAUSE_LEAD - lead) / 2
							    : ranked.best_score,
				      .evidence = lines,
				      .runner_up_confidence = ranked.next_score,
				      .separates = separates(build, &ranked, evidence),
				      .lacks = evidence->lacks,
				      .lack_count = evidence->lack_count,
				      .process = evidence->process,
				      .device = evidence->device };
	if (ranked.next) {
		cause->runner_up_id = ranked.next->id;
		cause->runner_up_name_id = ranked.next->name_id;
		cause->runner_up_name = ranked.next->name;
	}
	add_lines(build, ranked.best, evidence, lines, &cause->evidence_count);
	for (size_t i = 0; i < cause->evidence_count && !cause->site.depth; i++)
		if (!lines[i].against)
			cause->site = lines[i].stack;
	cause->fixes = cause_fixes(build, evidence, cause->id, &cause->fix_count);
	return cause;
}
