/* SPDX-License-Identifier: Apache-2.0 */
/* Scores the rules on the evidence and words the verdict. */
#include "analysis/explain/causes.h"
#include "analysis/explain/budget.h"

#include <math.h>
#include <string.h>

enum { LINES_MAX = 8 };

/* ---- all rules ---- */

/* The two best rules with different ids; of equal scores the earlier row wins. */
static struct ranking rank_rules(const struct evidence *evidence)
{
	struct ranking ranking = { 0 };

	for (const struct cause_rule *rule = cause_rules; rule->id; rule++) {
		double score = cause_score(rule, evidence);
		bool other = ranking.best && strcmp(ranking.best->id, rule->id) != 0;

		if (score > ranking.best_score) {
			if (other) {
				ranking.next = ranking.best;
				ranking.next_score = ranking.best_score;
			}
			ranking.best = rule;
			ranking.best_score = score;
		} else if (score > ranking.next_score && other) {
			ranking.next = rule;
			ranking.next_score = score;
		}
	}
	return ranking;
}

/* A close runner-up lowers the confidence by up to half of CAUSE_LEAD. */
static double confidence_of(const struct ranking *ranking)
{
	double lead = ranking->best_score - ranking->next_score;

	if (!ranking->next || lead >= CAUSE_LEAD)
		return ranking->best_score;
	return ranking->best_score - (CAUSE_LEAD - lead) / 2;
}

/* ---- evidence as lines ---- */

struct lines {
	const struct evidence *evidence;
	struct fact_evidence *items;
	size_t count;
};

/* The last sample may be of the exit itself, after the program's end. */
static uint64_t last_sample_ns(const struct fact_process *process)
{
	uint64_t sampled_ns;

	if (!process->timeline_count)
		return process->end_ns;
	sampled_ns = process->timeline[process->timeline_count - 1].time_ns;
	return sampled_ns < process->end_ns ? sampled_ns : process->end_ns;
}

/* What shows the line: the signal's events or sample, else the failure itself, else the last
 * sample. */
static void show_line(const struct lines *lines, const struct evidence_signal *signal,
		      struct fact_evidence *line)
{
	const struct evidence *evidence = lines->evidence;

	line->time_ns = CUF_UNKNOWN;
	if (signal->seq_count) {
		memcpy(line->seqs, signal->seqs, sizeof line->seqs);
		line->seq_count = signal->seq_count;
	} else if (evidence->incident) {
		line->seqs[0] = evidence->incident->seq;
		line->seq_count = 1;
	} else if (signal->time_ns != CUF_UNKNOWN) {
		line->time_ns = signal->time_ns;
	} else {
		line->time_ns = last_sample_ns(&evidence->facts->processes[evidence->process]);
	}
}

/* Several signals may have the same words. */
static bool has_line(const struct lines *lines, const char *words)
{
	for (size_t i = 0; i < lines->count; i++)
		if (!strcmp(lines->items[i].text, words))
			return true;
	return false;
}

/* First of all the arithmetic that decided. */
static void add_inequality(struct lines *lines, const struct cause_rule *rule)
{
	const struct evidence *evidence = lines->evidence;
	const char *words = NULL;

	if (cause_scope_of(evidence) == AT_FAILURE && rule->removes != REMOVED_NOTHING)
		words = cause_inequality(evidence, rule->removes);
	if (!words)
		return;
	lines->items[lines->count++] = (struct fact_evidence){
		.text = words,
		.process = evidence->process,
		.time_ns = CUF_UNKNOWN,
		.seqs = { evidence->incident->seq },
		.seq_count = 1,
		.stack = { .process = FACT_NONE },
	};
}

/* A line for a signal; of one that does not hold, it names no call site. */
static void add_line(struct lines *lines, enum signal name, bool negated, bool against)
{
	const struct evidence *evidence = lines->evidence;
	const struct evidence_signal *signal = &evidence->signals[name];
	const char *words = evidence_words(evidence, evidence->facts->arena,
					   negated ? signal_rows[name].words_not
						   : signal_rows[name].words);
	struct fact_evidence *line = &lines->items[lines->count];

	if (!words || !*words || lines->count == LINES_MAX || has_line(lines, words))
		return;
	*line = (struct fact_evidence){
		.text = words,
		.against = against,
		.process = evidence->process,
		.stack = { .process = FACT_NONE },
	};
	show_line(lines, signal, line);
	if (signal->stack && !negated) {
		line->stack = (struct fact_stack){ .process = evidence->process,
						   .id = signal->stack };
		stack_fill(evidence->facts, &line->stack, evidence->incident ? 0 : CUF_UNKNOWN);
	}
	lines->count++;
}

/* The heaviest test that holds, has the sign, and has no line yet. */
static const struct cause_test *heaviest(const struct cause_rule *rule,
					 const struct evidence *evidence, bool against,
					 const bool *done)
{
	const struct cause_test *best = NULL;

	for (const struct cause_test *test = rule->tests; test < cause_tests_end(rule); test++) {
		if (done[test - rule->tests] || !cause_holds(test, evidence) ||
		    (test->weight < 0) != against)
			continue;
		if (!best || fabs(test->weight) > fabs(best->weight))
			best = test;
	}
	return best;
}

/* Needs first, then tests for and against the cause, the heaviest first. */
static void add_tests(struct lines *lines, const struct cause_rule *rule, bool negated)
{
	bool done[CAUSE_TESTS] = { false };
	const struct cause_test *test;

	for (test = rule->needs; test < cause_needs_end(rule); test++)
		if (test->below == negated && cause_holds(test, lines->evidence))
			add_line(lines, test->signal, negated, false);
	for (int against = 0; against < 2; against++)
		while ((test = heaviest(rule, lines->evidence, against, done))) {
			done[test - rule->tests] = true;
			if (test->below == negated)
				add_line(lines, test->signal, negated, against);
		}
}

/* What is there weighs more than what is not, so signals that do not hold come last. */
static void add_lines(struct lines *lines, const struct cause_rule *rule)
{
	const struct evidence *evidence = lines->evidence;
	uint64_t contribution = evidence->metrics[METRIC_contribution];

	add_inequality(lines, rule);
	add_tests(lines, rule, false);
	if (strncmp(rule->id, "S6", 2) != 0 && contribution != CUF_UNKNOWN && contribution >= 1)
		add_line(lines, SIGNAL_contribution, false, false);
	if (evidence->signals[SIGNAL_imbalance].value >= 0.3)
		add_line(lines, SIGNAL_imbalance, false, false);
	add_tests(lines, rule, true);
}

/* ---- words ---- */

/* The first summary whose metrics are all known, else the name. */
static const char *summary_of(const struct facts *facts, const struct cause_rule *rule,
			      const struct evidence *evidence)
{
	for (size_t i = 0; i < 3 && rule->summaries[i]; i++) {
		const char *words = evidence_words(evidence, evidence->facts->arena,
						   rule->summaries[i]);
		if (words)
			return words;
	}
	return rule->name;
}

/* How much a signal, as strong as it is, speaks for a rule; a need counts like a heavy test. */
static double weight_in(const struct cause_rule *rule, enum signal signal,
			const struct evidence *evidence)
{
	for (const struct cause_test *need = rule->needs; need < cause_needs_end(rule); need++)
		if (need->signal == signal && !need->below && cause_holds(need, evidence))
			return 0.5;
	for (const struct cause_test *test = rule->tests; test < cause_tests_end(rule); test++)
		if (test->signal == signal && !test->below && cause_holds(test, evidence))
			return test->weight;
	return 0;
}

/* The signal that holds and weighs most for the best rule and not for the next one; NULL: none. */
static const char *difference_of(const struct facts *facts, const struct ranking *ranking,
				 const struct evidence *evidence)
{
	const char *best = NULL;
	double most = 0.04;

	for (enum signal s = 0; s < SIGNAL_MAX; s++) {
		double difference = weight_in(ranking->best, s, evidence) -
				    weight_in(ranking->next, s, evidence);
		const char *words;

		if (!evidence_holds(evidence, s) || difference <= most)
			continue;
		words = evidence_words(evidence, evidence->facts->arena, signal_rows[s].words);
		if (!words)
			continue;
		most = difference;
		best = words;
	}
	return best;
}

/* What distinguishes the two best causes; where they are close, also which data would. */
static const char *discriminator_of(const struct facts *facts, const struct ranking *ranking,
				    const struct evidence *evidence)
{
	double lead = ranking->best_score - ranking->next_score;
	const char *words;

	if (!ranking->next)
		return "";
	words = difference_of(evidence->facts, ranking, evidence);
	if (!*ranking->best->would_confirm || lead >= 2 * CAUSE_LEAD)
		return words ? words : "";
	return arena_format(evidence->facts->arena, "%s%sto confirm: %s", words ? words : "",
			    words ? "; " : "", ranking->best->would_confirm);
}

/* ---- the verdict ---- */

/* The best rule stays visible as a runner-up, with the data that would confirm it. */
static const struct fact_cause *inconclusive(const struct facts *facts,
					     const struct ranking *ranking,
					     const struct evidence *evidence)
{
	struct fact_cause *cause = arena_zeroed(evidence->facts->arena, 1, sizeof *cause);
	const struct cause_rule *best = ranking->best;

	*cause = (struct fact_cause){
		.id = "",
		.name_id = "",
		.name = "inconclusive",
		.summary = "the recording does not show why",
		.discriminator = "",
		.lacks = evidence->lacks,
		.lack_count = evidence->lack_count,
		.process = evidence->process,
		.device = evidence->device,
	};
	if (!best)
		return cause;
	cause->runner_up_id = best->id;
	cause->runner_up_name_id = best->name_id;
	cause->runner_up_name = best->name;
	cause->runner_up_confidence = ranking->best_score;
	cause->discriminator = arena_format(evidence->facts->arena, "to confirm: %s",
					    *best->would_confirm ? best->would_confirm
								 : "a complete recording");
	return cause;
}

/* The verdict is about the call site of its strongest evidence. */
static struct fact_stack shown_site(const struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		if (!lines->items[i].against && lines->items[i].stack.depth)
			return lines->items[i].stack;
	return (struct fact_stack){ .process = FACT_NONE };
}

/* What the first row of an id has for all of them. */
static void take_rule(struct fact_cause *cause, const struct cause_rule *first)
{
	cause->blames = first->blames;
	cause->marks = first->marks;
	cause->is_page_lock = first->is_page_lock;
}

/* NULL: at the end of a process that has no incident, when no rule applies. */
const struct fact_cause *cause_judge(const struct evidence *evidence)
{
	struct ranking ranking = cause_scope_of(evidence) == AT_FAILURE ? cause_decide(evidence)
								   : rank_rules(evidence);
	struct lines lines = { .evidence = evidence };
	struct fact_cause *cause;

	if (!ranking.best && !evidence->incident)
		return NULL;
	if (!ranking.best || ranking.best_score < CAUSE_LEAST)
		return inconclusive(evidence->facts, &ranking, evidence);
	lines.items = arena_zeroed(evidence->facts->arena, LINES_MAX, sizeof *lines.items);
	add_lines(&lines, ranking.best);
	cause = arena_zeroed(evidence->facts->arena, 1, sizeof *cause);
	*cause = (struct fact_cause){
		.id = ranking.best->id,
		.name_id = ranking.best->name_id,
		.name = ranking.best->name,
		.summary = summary_of(evidence->facts, ranking.best, evidence),
		.confidence = confidence_of(&ranking),
		.evidence = lines.items,
		.evidence_count = lines.count,
		.site = shown_site(&lines),
		.runner_up_confidence = ranking.next_score,
		.discriminator = discriminator_of(evidence->facts, &ranking, evidence),
		.lacks = evidence->lacks,
		.lack_count = evidence->lack_count,
		.process = evidence->process,
		.device = evidence->device,
	};
	take_rule(cause, cause_named(ranking.best->id));
	if (ranking.next) {
		cause->runner_up_id = ranking.next->id;
		cause->runner_up_name_id = ranking.next->name_id;
		cause->runner_up_name = ranking.next->name;
	}
	cause->fixes = cause_fixes(evidence, cause->id, &cause->fix_count);
	cause->counterfactual = cause_without(evidence, &cause->counterfactual_count);
	return cause;
}
