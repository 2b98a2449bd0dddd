/* SPDX-License-Identifier: Apache-2.0 */
/* Scores the rules on a vector and words the verdict. */
#include "analysis/explain/causes.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { LINES_MAX = 8 };

static bool is_term(const struct cause_term *t) { return t->threshold > 0; }
static bool is_seen(const struct cause_term *t, const struct evidence *e) { return !isnan(e->terms[t->term].value); }
static bool holds(const struct cause_term *t, const struct evidence *e)
{
	double value = e->terms[t->term].value;
	return t->below ? value < t->threshold : value >= t->threshold; /* NAN: neither */
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

static unsigned scope_of(const struct evidence *e)
{
	if (!e->incident)
		return AT_END;
	return e->incident->kind == CUF_KIND_HOST ? AT_REFUSAL : AT_FAILURE;
}

double cause_score(const struct cause_rule *rule, const struct evidence *evidence)
{
	double score = rule->base, factor = evidence->quality;
	if (!(rule->scope & scope_of(evidence)))
		return 0;
	for (const struct cause_term *t = rule->needs; t < rule->needs + CAUSE_NEEDS && is_term(t); t++) {
		if (is_seen(t, evidence) ? !holds(t, evidence) : t == rule->needs)
			return 0;
		factor *= is_seen(t, evidence) ? 1 : CAUSE_UNSEEN;
	}
	for (const struct cause_term *t = rule->terms; t < rule->terms + CAUSE_TERMS && is_term(t); t++)
		score += holds(t, evidence) ? t->weight : 0;
	score *= factor;
	return score < 0 ? 0 : score > CAUSE_MOST ? CAUSE_MOST : score;
}

struct ranked { const struct cause_rule *best, *next; double best_score, next_score; };

/* The two best of different names; of equal ones the earlier in the table. */
static struct ranked rank(const struct evidence *e)
{
	struct ranked r = { 0 };
	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		double score = cause_score(rule, e);
		if (score > r.best_score) {
			if (r.best && strcmp(r.best->id, rule->id) != 0) {
				r.next = r.best;
				r.next_score = r.best_score;
			}
			r.best = rule;
			r.best_score = score;
		} else if (score > r.next_score && strcmp(r.best->id, rule->id) != 0) {
			r.next = rule;
			r.next_score = score;
		}
	}
	return r;
}

/* ---- words ---- */

/* The last sample may be of the exit itself, after the program's end. */
static uint64_t last_look_ns(const struct fact_process *p)
{
	uint64_t sampled_ns = p->timeline_count ? p->timeline[p->timeline_count - 1].time_ns : p->end_ns;
	return sampled_ns < p->end_ns ? sampled_ns : p->end_ns;
}

static void add_line(struct build *b, const struct evidence *e, enum term term, bool against, struct fact_evidence *lines, size_t *count)
{
	const struct evidence_term *t = &e->terms[term];
	const struct fact_process *p = &b->facts->processes[e->process];
	struct evidence_term shown = *t;
	const char *words = evidence_words(e, b->arena, term_rows[term].words);
	struct fact_evidence *line = &lines[*count];
	if (!words || *count == LINES_MAX)
		return;
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(lines[i].text, words))
			return;
	/* where nothing better shows it, the failure itself does, or the last sample */
	if (!t->seq_count && e->incident)
		shown = (struct evidence_term){ .seqs = { e->incident->seq }, .seq_count = 1, .time_ns = CUF_UNKNOWN, .stack = t->stack };
	else if (!t->seq_count && t->time_ns == CUF_UNKNOWN)
		shown.time_ns = last_look_ns(p);
	t = &shown;
	*line = (struct fact_evidence){ .text = words, .against = against, .process = e->process, .seq_count = t->seq_count,
		.time_ns = t->seq_count ? CUF_UNKNOWN : t->time_ns };
	memcpy(line->seqs, t->seqs, sizeof line->seqs);
	line->stack = (struct fact_stack){ .process = t->stack ? e->process : FACT_NONE, .id = t->stack };
	if (t->stack)
		stack_fill(b, &line->stack, e->incident ? 0 : CUF_UNKNOWN);
	++*count;
}

/* The heaviest term that holds and was not told yet. */
static const struct cause_term *heaviest(const struct cause_rule *rule, const struct evidence *e, bool against, const bool *told)
{
	const struct cause_term *best = NULL;
	for (const struct cause_term *t = rule->terms; t < rule->terms + CAUSE_TERMS && is_term(t); t++)
		if (!told[t - rule->terms] && holds(t, e) && (t->weight < 0) == against && (!best || fabs(t->weight) > fabs(best->weight)))
			best = t;
	return best;
}

/* A term that is a comparison from below reads as its opposite; those sentences are left out. */
static void add_lines(struct build *b, const struct cause_rule *rule, const struct evidence *e, struct fact_evidence *lines, size_t *count)
{
	bool told[CAUSE_TERMS] = { false };
	const struct cause_term *t;
	for (t = rule->needs; t < rule->needs + CAUSE_NEEDS && is_term(t); t++)
		if (!t->below && holds(t, e))
			add_line(b, e, t->term, false, lines, count);
	for (int against = 0; against < 2; against++)
		while ((t = heaviest(rule, e, against, told))) {
			told[t - rule->terms] = true;
			if (!t->below)
				add_line(b, e, t->term, against, lines, count);
		}
	if (strncmp(rule->id, "S6", 2) != 0 && e->figures[FIG_contribution] != CUF_UNKNOWN && e->figures[FIG_contribution] >= 1)
		add_line(b, e, TERM_contribution, false, lines, count);
	if (e->terms[TERM_imbalance].value >= 0.3)
		add_line(b, e, TERM_imbalance, false, lines, count);
}

static const char *summary_of(struct build *b, const struct cause_rule *rule, const struct evidence *e)
{
	for (size_t i = 0; i < 3 && rule->summaries[i]; i++) {
		const char *words = evidence_words(e, b->arena, rule->summaries[i]);
		if (words)
			return words;
	}
	return rule->name;
}

static double weight_in(const struct cause_rule *rule, enum term term)
{
	for (const struct cause_term *t = rule->needs; t < rule->needs + CAUSE_NEEDS && is_term(t); t++)
		if (t->term == term && !t->below)
			return 0.5;
	for (const struct cause_term *t = rule->terms; t < rule->terms + CAUSE_TERMS && is_term(t); t++)
		if (t->term == term)
			return t->weight;
	return 0;
}

/* The term that holds and weighs most for one and not for the other; else what would settle it. */
static const char *separates(struct build *b, const struct ranked *r, const struct evidence *e)
{
	enum term best = TERM_MAX;
	double most = 0.04;
	const char *words;
	if (!r->next)
		return "";
	for (enum term t = 0; t < TERM_MAX; t++) {
		double difference = weight_in(r->best, t) - weight_in(r->next, t);
		const struct cause_term now = { t, false, 1e-9, 0 };
		if (holds(&now, e) && difference > most && (words = evidence_words(e, b->arena, term_rows[t].words))) {
			most = difference;
			best = t;
		}
	}
	words = best < TERM_MAX ? evidence_words(e, b->arena, term_rows[best].words) : NULL;
	if (!*r->best->settle || r->best_score - r->next_score >= 2 * CAUSE_LEAD)
		return words ? words : "";
	return arena_format(b->arena, "%s%swhat would settle it: %s", words ? words : "", words ? "; " : "", r->best->settle);
}

static const struct fact_cause *inconclusive(struct build *b, const struct ranked *r, const struct evidence *e)
{
	struct fact_cause *c = arena_zeroed(b->arena, 1, sizeof *c);
	*c = (struct fact_cause){ .id = "", .name_id = "", .name = "inconclusive", .summary = "what was recorded does not tell why", .confidence = 0, .separates = "",
		.lacks = e->lacks, .lack_count = e->lack_count, .process = e->process, .device = e->device };
	if (r->best) {
		c->runner_up_id = r->best->id;
		c->runner_up_name_id = r->best->name_id;
		c->runner_up_name = r->best->name;
		c->runner_up_confidence = r->best_score;
		c->separates = arena_format(b->arena, "what would settle it: %s", *r->best->settle ? r->best->settle : "a complete recording");
	}
	return c;
}

const struct fact_cause *cause_judge(struct build *build, const struct evidence *evidence)
{
	struct ranked r = rank(evidence);
	struct fact_evidence *lines;
	struct fact_cause *c;
	double lead = r.best_score - r.next_score;
	if (!r.best && !evidence->incident)
		return NULL;
	if (!r.best || r.best_score < CAUSE_LEAST)
		return inconclusive(build, &r, evidence);
	c = arena_zeroed(build->arena, 1, sizeof *c);
	lines = arena_zeroed(build->arena, LINES_MAX, sizeof *lines);
	*c = (struct fact_cause){ .id = r.best->id, .name_id = r.best->name_id, .name = r.best->name, .summary = summary_of(build, r.best, evidence),
		.confidence = r.next && lead < CAUSE_LEAD ? r.best_score - (CAUSE_LEAD - lead) / 2 : r.best_score, .evidence = lines,
		.runner_up_confidence = r.next_score,
		.separates = separates(build, &r, evidence), .lacks = evidence->lacks, .lack_count = evidence->lack_count,
		.process = evidence->process, .device = evidence->device };
	if (r.next) {
		c->runner_up_id = r.next->id;
		c->runner_up_name_id = r.next->name_id;
		c->runner_up_name = r.next->name;
	}
	add_lines(build, r.best, evidence, lines, &c->evidence_count);
	for (size_t i = 0; i < c->evidence_count && !c->site.depth; i++)
		if (!lines[i].against)
			c->site = lines[i].stack;
	c->fixes = cause_fixes(build, evidence, c->id, &c->fix_count);
	return c;
}
