/* SPDX-License-Identifier: Apache-2.0 */
/* The samples that a rule looks at. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/units.h"
#include "analysis/cmd/watch/rule.h"

struct reading {
	const struct rule *rule;
	const struct watch *watch;
	rule_take *take;
	void *state;
};

/* NULL: the sample has no such label. */
static const char *value_of(const struct exposed *metric, const char *const *values,
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
	const char *process = value_of(wanted->metric, values, "process");
	const char *uuid = value_of(wanted->metric, values, "UUID");

	if ((process && (!wanted->process || strcmp(process, wanted->process) != 0)) ||
	    (uuid && (!wanted->uuid || strcmp(uuid, wanted->uuid) != 0)))
		return;
	wanted->value = value;
}

static double whole_of(const struct reading *reading, const char *const *values)
{
	const struct rule_subject *subject = &reading->rule->subject;
	struct wanted wanted = { subject->whole, value_of(subject->metric, values, "process"),
				 value_of(subject->metric, values, "UUID"), NAN };

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
static void describe(const struct exposed *metric, const char *const *values, char *out,
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
	const struct reading *reading = state;
	const struct rule_subject *subject = &reading->rule->subject;
	const char *process = value_of(subject->metric, values, "process"),
		   *gpu = value_of(subject->metric, values, "gpu");
	struct rule_sample sample = { process ? process : "", gpu ? gpu : "", "", value, NAN };
	double whole;

	if (!is_meant(subject, values))
		return;
	whole = whole_of(reading, values);
	if (subject->is_rest)
		sample.value = whole - value;
	if (whole > 0)
		sample.share = sample.value / whole;
	describe(subject->metric, values, sample.series, sizeof sample.series);
	if (!isnan(sample.value))
		reading->take(reading->state, &sample);
}

void rule_read(const struct rule *rule, const struct watch *watch, rule_take *take, void *state)
{
	struct reading reading = { rule, watch, take, state };

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
