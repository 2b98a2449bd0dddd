/* SPDX-License-Identifier: Apache-2.0 */
/* The samples that a rule looks at. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/cmd/cli/suggest.h"
#include "analysis/cmd/live/rule.h"
#include "analysis/view/live/metrics_groups.h"

struct rule_reading {
	const struct rule *rule;
	const struct watch *watch;
	rule_take *take;
	void *state;
};

/* NULL: the sample has no such label. */
static const char *label_value_of(const struct exposed *metric, const char *const *values,
				  const char *name)
{
	const char *at = metric->labels;
	struct metric_label label;

	for (size_t i = 0; metric_label_next(&at, &label); i++)
		if (metric_label_is(&label, name))
			return values[i];
	return NULL;
}

/* ---- what a share is of ---- */

struct wanted { const struct exposed *metric; const char *process, *uuid; double value; };

static void take_whole(void *state, const char *const *values, double value)
{
	struct wanted *wanted = state;
	const char *process = label_value_of(wanted->metric, values, "process");
	const char *uuid = label_value_of(wanted->metric, values, "UUID");

	if ((process && (!wanted->process || strcmp(process, wanted->process) != 0)) ||
	    (uuid && (!wanted->uuid || strcmp(uuid, wanted->uuid) != 0)))
		return;
	wanted->value = value;
}

static double whole_of(const struct rule_reading *reading, const char *const *values)
{
	const struct rule_subject *subject = &reading->rule->subject;
	struct wanted wanted = { subject->whole, label_value_of(subject->metric, values, "process"),
				 label_value_of(subject->metric, values, "UUID"), NAN };

	if (subject->whole)
		metric_read(subject->whole, reading->watch, take_whole, &wanted);
	return wanted.value;
}

/* ---- samples ---- */

/* Each word is the value of a label. Of the bounds of a forecast the expected one is meant. */
static bool is_meant(const struct rule_subject *subject, const char *const *values)
{
	const char *at = subject->metric->labels;
	bool is_expected = true;
	struct metric_label label;
	size_t found = 0;

	for (size_t i = 0; metric_label_next(&at, &label); i++) {
		bool is_named = false;

		for (size_t w = 0; values[i] && w < subject->word_count; w++)
			is_named |= !strcmp(values[i], subject->words[w]);
		found += is_named;
		if (metric_label_is(&label, "bound"))
			is_expected = is_named || !strcmp(values[i], "expected");
	}
	return is_expected && found == subject->word_count;
}

/* The labels that tell series apart, for people. */
static void describe_series(const struct exposed *metric, const char *const *values, char *out,
			    size_t bytes)
{
	static const char *const left_out[] = { "UUID", "bound", "resource" };
	const char *at = metric->labels;
	struct metric_label label;
	size_t used = 0;

	*out = 0;
	for (size_t i = 0; metric_label_next(&at, &label) && used < bytes; i++) {
		bool is_shown = values[i] && *values[i];

		for (size_t n = 0; n < sizeof left_out / sizeof *left_out; n++)
			is_shown &= !metric_label_is(&label, left_out[n]);
		if (is_shown)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s%s",
						 used ? ", " : "",
						 metric_label_is(&label, "gpu") ? "GPU " : "",
						 values[i]);
	}
}

static void take_sample(void *state, const char *const *values, double value)
{
	const struct rule_reading *reading = state;
	const struct rule_subject *subject = &reading->rule->subject;
	const char *process = label_value_of(subject->metric, values, "process"),
		   *gpu = label_value_of(subject->metric, values, "gpu");
	struct rule_sample sample = { process ? process : "", gpu ? gpu : "", "", value, NAN };
	double whole;

	if (!is_meant(subject, values))
		return;
	whole = whole_of(reading, values);
	if (subject->is_rest)
		sample.value = whole - value;
	if (whole > 0)
		sample.share = sample.value / whole;
	describe_series(subject->metric, values, sample.series, sizeof sample.series);
	if (!isnan(sample.value))
		reading->take(reading->state, &sample);
}

void rule_read(const struct rule *rule, const struct watch *watch, rule_take *take, void *state)
{
	struct rule_reading reading = { rule, watch, take, state };

	metric_read(rule->subject.metric, watch, take_sample, &reading);
}

bool rule_holds(const struct rule *rule, double value, double share)
{
	double seen = rule->is_share ? share : value;

	return rule->is_below ? seen < rule->value : seen > rule->value; /* of NAN neither */
}

void rule_value_text(const struct rule *rule, double value, double share, char *out, size_t bytes)
{
	if (rule->is_share)
		snprintf(out, bytes, "%.1f%%", share * 100);
	else if (isinf(value))
		snprintf(out, bytes, "never");
	else if (rule->subject.unit == RULE_SECONDS && value >= 0 && value < 1e9)
		snprintf(out, bytes, "%s", units_duration((uint64_t)(value * 1e9)).s);
	else if (rule->subject.unit == RULE_BYTES)
		snprintf(out, bytes, "%s", value < 0 ? units_bytes_signed(value).s :
						       units_bytes((uint64_t)value).s);
	else
		snprintf(out, bytes, "%.6g", value);
}

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
