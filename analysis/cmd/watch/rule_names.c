/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule may look at: the table of metrics, and a few short names. */
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/suggest.h"
#include "analysis/cmd/watch/rule.h"
#include "analysis/view/live/metrics_groups.h"

/* The first row of a name is what it is without a word. */
static const struct short_name {
	const char *name, *word;
	const char *metric, *its_word; /* "": none */
	bool is_rest;
} short_names[] = {
	{ "used", "gpu", "gpu_memory_free", "", true },
	{ "used", "cgroup", "cgroup_memory_working", "", false },
	{ "free", "gpu", "gpu_memory_free", "", false },
	{ "headroom", "gpu", "gpu_memory_headroom", "", false },
	{ "failures", NULL, "allocation_failures", "", false },
	{ "time_to_oom", "machine", "time_to_oom", "host", false },
	{ "growth", "machine", "growth", "host", false },
};

enum { SHORT_NAMES = sizeof short_names / sizeof *short_names, NAME_BYTES = 64, NAMES_MAX = 128 };

/* ---- names of metrics ---- */

static bool cut_ending(char *name, const char *ending)
{
	size_t bytes = strlen(name), length = strlen(ending);

	if (bytes <= length || strcmp(name + bytes - length, ending) != 0)
		return false;
	name[bytes - length] = 0;
	return true;
}

static enum rule_unit plain_name(const struct exposed *metric, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%s", metric->name + strlen("cuflight_"));
	if (metric->type == METRIC_COUNTER)
		cut_ending(out, "_total");
	if (cut_ending(out, "_bytes") || cut_ending(out, "_bytes_per_second"))
		return RULE_BYTES;
	return cut_ending(out, "_seconds") ? RULE_SECONDS : RULE_NUMBER;
}

static bool find_metric(struct rule_subject *subject, const char *name)
{
	char plain[NAME_BYTES];

	for (const struct exposed *const *metric = metric_table; *metric; metric++) {
		subject->unit = plain_name(*metric, plain);
		subject->metric = *metric;
		if (!strcmp(plain, name) || !strcmp((*metric)->name, name))
			return true;
	}
	subject->metric = NULL;
	return false;
}

static bool has_label(const struct exposed *metric, const char *name)
{
	const char *at = metric->labels;
	struct metric_label label;

	while (metric_label_next(&at, &label))
		if (metric_label_is(&label, name))
			return true;
	return false;
}

/* ---- words ---- */

/* A word of one of its labels. */
static bool is_word(const struct exposed *metric, const char *word)
{
	const char *at = metric->labels;
	size_t bytes = strlen(word);
	struct metric_label label;

	while (metric_label_next(&at, &label))
		for (size_t i = 0, length; i < label.word_bytes; i += length + 1) {
			length = strcspn(label.words + i, "|,");
			if (length == bytes && !strncmp(label.words + i, word, bytes))
				return true;
		}
	return false;
}

static void drop_first_word(struct rule_subject *subject)
{
	subject->word_count--;
	memmove(subject->words[0], subject->words[1],
		(RULE_WORDS - 1) * sizeof subject->words[0]);
}

/* A short name becomes that of a metric. */
static const char *resolve(struct rule_subject *subject, const char *name)
{
	const struct short_name *found = NULL;
	bool by_word = false;

	for (size_t i = 0; i < SHORT_NAMES && !by_word; i++) {
		const struct short_name *row = &short_names[i];

		if (strcmp(row->name, name) != 0)
			continue;
		by_word = row->word && subject->word_count &&
			  !strcmp(row->word, subject->words[0]);
		if (by_word || (!found && strcmp(row->metric, name) != 0))
			found = row;
	}
	if (!found)
		return name;
	subject->is_rest = found->is_rest;
	if (by_word && *found->its_word)
		snprintf(subject->words[0], sizeof subject->words[0], "%s", found->its_word);
	else if (by_word)
		drop_first_word(subject);
	return found->metric;
}

bool rule_subject_find(struct rule_subject *subject, const char *name, const char **wrong)
{
	*wrong = NULL;
	if (!find_metric(subject, resolve(subject, name)))
		return false;
	if (subject->unit == RULE_BYTES && strstr(subject->metric->name, "_cgroup_"))
		subject->whole = &metric_cgroup_limit;
	else if (subject->unit == RULE_BYTES && has_label(subject->metric, "UUID"))
		subject->whole = &metric_gpu_total;
	for (size_t i = 0; i < subject->word_count; i++)
		if (!is_word(subject->metric, subject->words[i])) {
			*wrong = subject->words[i];
			return false;
		}
	return true;
}

/* ---- what could be meant ---- */

static void hint_name(const char *name, char *out, size_t bytes)
{
	static char plain[NAMES_MAX][NAME_BYTES];
	const char *names[NAMES_MAX + SHORT_NAMES], *nearest;
	size_t count = 0;

	for (const struct exposed *const *metric = metric_table; *metric && count < NAMES_MAX;
	     metric++) {
		plain_name(*metric, plain[count]);
		names[count] = plain[count];
		count++;
	}
	for (size_t i = 0; i < SHORT_NAMES; i++)
		names[count++] = short_names[i].name;
	nearest = suggest_nearest(name, names, count);
	if (nearest)
		snprintf(out, bytes, "unknown name '%s': did you mean '%s'?", name, nearest);
	else
		snprintf(out, bytes, "unknown name '%s': expected time_to_oom, headroom, free, "
			 "used, leak, growth, failures, or a metric of cuflight-serve(1) without "
			 "cuflight_ and its unit", name);
}

/* The words of short names, too: "machine" is what people call it. "" where there are none. */
static void list_words(const struct rule_subject *subject, const char *name, char *out,
		       size_t bytes)
{
	const char *at = subject->metric->labels;
	struct metric_label label;
	size_t used = 0;

	*out = 0;
	for (size_t i = 0; i < SHORT_NAMES && used < bytes; i++)
		if (!strcmp(short_names[i].name, name) && short_names[i].word)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s",
						 used ? ", " : "", short_names[i].word);
	while (metric_label_next(&at, &label))
		for (size_t w = 0, length; w < label.word_bytes && used < bytes; w += length + 1) {
			length = strcspn(label.words + w, "|,");
			used += (size_t)snprintf(out + used, bytes - used, "%s%.*s",
						 used ? ", " : "", (int)length, label.words + w);
		}
}

void rule_subject_hint(const struct rule_subject *subject, const char *name, const char *wrong,
		       char *out, size_t bytes)
{
	char words[200];

	if (!wrong) {
		hint_name(name, out, bytes);
		return;
	}
	list_words(subject, name, words, sizeof words);
	if (*words)
		snprintf(out, bytes, "unknown word '%s' of %s: expected %s", wrong, name, words);
	else
		snprintf(out, bytes, "%s takes no word in parentheses", name);
}
