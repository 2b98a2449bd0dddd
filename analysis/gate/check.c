/* SPDX-License-Identifier: Apache-2.0 */
/* Compares bounds with limits, one question after the other. */
#include "analysis/gate/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/compared.h"
#include "analysis/gate/finding.h"

/* A sum that would wrap is no limit at all, which CUF_UNKNOWN - 1 is for all purposes. */
static uint64_t raised(uint64_t value, double by)
{
	double sum = (double)value + by;

	if (sum >= (double)(CUF_UNKNOWN / 2))
		return CUF_UNKNOWN - 1;
	return value + (uint64_t)floor(by);
}

uint64_t judge_allowed(const struct gate_limit *limit, const struct gate_spread *baseline)
{
	uint64_t allowed;

	if (!limit->relative)
		return limit->value;
	if (!baseline->runs)
		return CUF_UNKNOWN;
	allowed = raised(baseline->median, (double)baseline->median * limit->percent / 100);
	allowed = most_of(allowed, raised(baseline->median, (double)limit->value));
	allowed = most_of(allowed, baseline->most);
	return most_of(allowed, raised(baseline->median, JUDGE_DEVIATIONS * JUDGE_SIGMA_OF_MAD *
								 (double)baseline->mad));
}

/* Bounds on one side of a limit: ok, exceeded, or it lies between them. */
static enum gate_status between(bool exceeded, bool ok)
{
	if (exceeded)
		return GATE_EXCEEDED;
	return ok ? GATE_OK : GATE_INCONCLUSIVE;
}

enum gate_status judge(const struct gate_limit *limit, const struct gate_value *value,
		       uint64_t allowed)
{
	bool bounded = value->high != CUF_UNKNOWN;
	enum gate_status status = GATE_INCONCLUSIVE;

	if (allowed == CUF_UNKNOWN)
		return GATE_INCONCLUSIVE;
	switch (limit->operator) {
	case GATE_AT_MOST:
		status = between(value->low > allowed, bounded && value->high <= allowed);
		break;
	case GATE_BELOW:
		status = between(value->low >= allowed, bounded && value->high < allowed);
		break;
	case GATE_AT_LEAST:
		status = between(bounded && value->high < allowed,
				 value->value != CUF_UNKNOWN && value->low >= allowed);
		break;
	case GATE_EQUAL:
		status = between(value->low > allowed || (bounded && value->high < allowed),
				 bounded && value->low == value->high);
		break;
	}
	/* what was not proven does not trip it; but what a baseline knew must still be known */
	if (status == GATE_INCONCLUSIVE && limit->proofs_only && (bounded || !limit->relative))
		return GATE_OK;
	return status;
}

/* Judges each limit, looks for the call sites behind what is exceeded, and writes the sentences. */
enum { GAPS_MAX = 16, NOTES_MAX = 8, SHOWN_MAX = 8 };

struct check {
	const struct gate_question *question;
	struct measured run;
	struct compared compared;
	struct gate_result *out;
};

/* ---- which limits hold ---- */

static bool has_measure(const struct gate_limits *limits, const struct gate_measure *measure)
{
	for (size_t i = 0; i < limits->count; i++)
		if (limits->items[i].measure == measure && !limits->items[i].phase)
			return true;
	return false;
}

static void add_zero(struct gate_limits *limits, enum gate_measure_id id, struct arena *arena)
{
	struct gate_limit limit = { .measure = &gate_measures[id],
				    .operator = GATE_EQUAL,
				    .proofs_only = true,
				    .origin = "default" };

	limit.text = arena_format(arena, "%s = 0", limit.measure->name);
	gate_limits_add(limits, &limit);
}

static void add_implied(struct gate_limits *limits, const struct gate_measure *measure,
			struct arena *arena)
{
	struct gate_limit limit = { .measure = measure,
				    .operator = GATE_AT_MOST,
				    .relative = true,
				    .proofs_only = true,
				    .percent = measure->percent,
				    .value = measure->floor_bytes,
				    .origin = "default" };

	limit.text = arena_format(arena, "%s <= +%.0f%%", measure->name, measure->percent);
	gate_limits_add(limits, &limit);
}

/* A leak that the baseline has is judged against it, like everything that is watched. */
static void add_leak_limits(struct gate_limits *limits, const struct gate_baseline *baseline,
			    struct arena *arena)
{
	static const enum gate_measure_id leaks[] = { MEASURE_DEVICE_LEAK, MEASURE_HOST_LEAK };

	for (size_t i = 0; i < 2; i++)
		if (!baseline || !baseline->measures[leaks[i]].median)
			add_zero(limits, leaks[i], arena);
}

/* What was asked for; else no leaks, and nothing worse than the baseline. Never a fatal failure. */
static struct gate_limits limits_of(const struct check *check)
{
	const struct gate_baseline *baseline = check->question->baseline;
	struct gate_limits limits = { 0 };

	for (size_t i = 0; i < check->question->limits->count; i++)
		gate_limits_add(&limits, &check->question->limits->items[i]);
	if (!limits.count) {
		add_leak_limits(&limits, baseline, check->run.arena);
		for (size_t i = 0; baseline && i < MEASURE_MAX; i++)
			if (gate_measures[i].percent > 0 && baseline->measures[i].runs &&
			    !has_measure(&limits, &gate_measures[i]))
				add_implied(&limits, &gate_measures[i], check->run.arena);
	}
	if (!has_measure(&limits, &gate_measures[MEASURE_INCIDENTS_FATAL]))
		add_zero(&limits, MEASURE_INCIDENTS_FATAL, check->run.arena);
	return limits;
}

/* ---- sentences ---- */

/* How the value is on the wrong side. */
static const char *limit_words(const struct gate_finding *finding)
{
	if (finding->observed.value < finding->allowed)
		return "less than";
	if (finding->observed.value == finding->allowed)
		return "not below";
	return "more than";
}

/* "in phase 'decode'" */
static const char *scope_of(const struct gate_limit *limit, struct arena *arena)
{
	if (!limit->phase)
		return "";
	return arena_format(arena, " in '%s'", limit->phase);
}

static const char *relative_text(const struct gate_finding *finding, struct arena *arena)
{
	const struct gate_measure *measure = finding->limit.measure;
	uint64_t now = finding->observed.value, before = finding->baseline.median;
	const char *change = "against";

	if (now == before)
		return arena_format(arena, "%s: %s, as in the baseline", measure->noun,
				    gate_amount(measure, now).s);
	if (before && now > before)
		change = arena_format(arena, "%.1f%% more than",
				      100.0 * (double)(now - before) / (double)before);
	else if (before)
		change = arena_format(arena, "%.1f%% less than",
				      100.0 * (double)(before - now) / (double)before);
	return arena_format(arena, "%s: %s, %s the baseline's %s; allowed: %s", measure->noun,
			    gate_amount(measure, now).s, change, gate_amount(measure, before).s,
			    gate_amount(measure, finding->allowed).s);
}

static const char *message_of(const struct gate_finding *finding, struct arena *arena)
{
	const struct gate_measure *measure = finding->limit.measure;
	const char *scope = scope_of(&finding->limit, arena), *kill = "";

	if (measure == &gate_measures[MEASURE_INCIDENTS_FATAL])
		kill = finding->observed.why;
	if (finding->status == GATE_INCONCLUSIVE)
		return arena_format(arena, "%s%s cannot be judged: %s", measure->noun, scope,
				    finding->observed.why);
	if (finding->limit.relative)
		return relative_text(finding, arena);
	if (finding->status == GATE_EXCEEDED)
		return arena_format(arena, "%s%s: %s, %s the limit of %s%s%s", measure->noun, scope,
				    gate_amount(measure, finding->observed.value).s,
				    limit_words(finding), gate_amount(measure, finding->allowed).s,
				    *kill ? "; " : "", kill);
	if (finding->status == GATE_SUPPRESSED)
		return arena_format(arena, "%s%s: %s, of which rules suppress %s; the limit is %s",
				    measure->noun, scope,
				    gate_amount(measure, finding->observed.value +
							    finding->suppressed_bytes).s,
				    gate_amount(measure, finding->suppressed_bytes).s,
				    gate_amount(measure, finding->allowed).s);
	return arena_format(arena, "%s%s: %s; the limit is %s", measure->noun, scope,
			    gate_amount(measure, finding->observed.value).s,
			    gate_amount(measure, finding->allowed).s);
}

/* ---- judging ---- */

static bool used_cuda(const struct facts *facts)
{
	for (size_t i = 0; i < facts->process_count; i++)
		if (facts->processes[i].first_cuda_ns != CUF_UNKNOWN)
			return true;
	return facts->device_count > 0;
}

static bool had_framework(const struct facts *facts)
{
	for (size_t i = 0; i < facts->device_count; i++)
		if (facts->devices[i].fragmentation.framework_count)
			return true;
	return false;
}

/* A limit that somebody set on what was never there is no pass: most likely the wrong program was
 * recorded. */
static void require_subject(const struct check *check, const struct gate_limit *limit,
			    struct gate_value *value)
{
	enum gate_group group = limit->measure->group;
	const char *why = "";

	if (limit->proofs_only || group > GROUP_FRAMEWORK)
		return;
	if (!used_cuda(check->run.facts))
		why = "no CUDA call was recorded";
	else if (group == GROUP_FRAMEWORK && !had_framework(check->run.facts))
		why = "no framework reported its blocks";
	if (*why)
		*value = (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, why };
}

static struct gate_value limit_value_of(const struct check *check, const struct gate_limit *limit)
{
	struct gate_value value = check->run.values[limit->measure - gate_measures];

	if (limit->phase)
		value = measure_phase(&check->run, limit->measure->group,
				      limit->measure >= &gate_measures[MEASURE_DEVICE_END],
				      limit->phase);
	require_subject(check, limit, &value);
	return value;
}

static uint64_t reduced(uint64_t figure, uint64_t by)
{
	return figure == CUF_UNKNOWN ? figure : subtract_to_zero(figure, by);
}

/* What rules suppress is not counted; if that makes it fit, the finding is suppressed. */
static void apply_rules(struct gate_finding *finding, bool counts)
{
	for (size_t i = 0; i < finding->site_count; i++) {
		const struct gate_site *site = &finding->sites[i];
		if (!site->rule)
			continue;
		finding->suppressed_bytes += counts ? 1 : guilty_weight(site);
		if (!finding->rule)
			finding->rule = site->rule;
	}
	if (!finding->suppressed_bytes)
		return;
	finding->observed.value = reduced(finding->observed.value, finding->suppressed_bytes);
	finding->observed.low = reduced(finding->observed.low, finding->suppressed_bytes);
	finding->observed.high = reduced(finding->observed.high, finding->suppressed_bytes);
	finding->status = judge(&finding->limit, &finding->observed, finding->allowed);
	if (finding->status == GATE_OK)
		finding->status = GATE_SUPPRESSED;
}

/* Why it cannot be judged, where the value itself is known. */
static void explain_inconclusive(struct gate_finding *finding)
{
	if (finding->status != GATE_INCONCLUSIVE)
		return;
	if (finding->limit.relative && !finding->baseline.runs)
		finding->observed.why = "the baseline does not have it";
	else if (!*finding->observed.why)
		finding->observed.why = "it is not known exactly";
}

static void judge_limit(struct check *check, const struct gate_limit *limit,
			struct gate_finding *out)
{
	const struct gate_baseline *baseline = check->question->baseline;
	size_t id = (size_t)(limit->measure - gate_measures);
	bool counts = limit->measure->unit == GATE_COUNT;

	*out = (struct gate_finding){ .limit = *limit, .observed = limit_value_of(check, limit) };
	if (baseline && !limit->phase)
		out->baseline = baseline->measures[id];
	out->allowed = judge_allowed(limit, &out->baseline);
	out->status = judge(limit, &out->observed, out->allowed);
	if (out->status == GATE_EXCEEDED && limit->operator != GATE_AT_LEAST) {
		out->sites = guilty_sites(&check->compared, check->question, limit->measure,
					  &out->site_count);
		apply_rules(out, counts);
		out->site_count = least_of(out->site_count, SHOWN_MAX);
	}
	explain_inconclusive(out);
	out->message = message_of(out, check->run.arena);
}

static int worst_first(const void *a, const void *b)
{
	const struct gate_finding *left = a, *right = b;

	if (left->status != right->status)
		return left->status > right->status ? -1 : 1;
	return strcmp(left->limit.text, right->limit.text);
}

static void judge_limits(struct check *check)
{
	struct gate_limits limits = limits_of(check);
	struct gate_result *out = check->out;

	out->findings = arena_zeroed(check->run.arena, limits.count, sizeof *out->findings);
	for (size_t i = 0; i < limits.count; i++) {
		judge_limit(check, &limits.items[i], &out->findings[i]);
		out->suppressed_bytes += out->findings[i].suppressed_bytes;
	}
	out->finding_count = limits.count;
	qsort(out->findings, limits.count, sizeof *out->findings, worst_first);
	free(limits.items);
}

/* ---- the run as a whole ---- */

static void look_for_gaps(struct check *check)
{
	const struct gate_baseline *baseline = check->question->baseline;
	const char *gaps[GAPS_MAX], *notes[NOTES_MAX], *text;
	size_t count = measure_gaps(&check->run, gaps, GAPS_MAX - 2), note_count = 0;

	if (check->question->nothing_asked)
		gaps[count++] = check->question->unused_sections;
	else if (check->question->unused_sections)
		notes[note_count++] = check->question->unused_sections;
	for (size_t i = 0; i < check->run.facts->process_count && note_count < NOTES_MAX - 1; i++)
		if (check->run.facts->processes[i].end == END_RUNNING)
			notes[note_count++] = arena_format(
				check->run.arena, "process %u still runs: what it did so far is "
				"judged", check->run.facts->processes[i].pid);
	if (baseline && !check->question->any_environment) {
		text = environment_difference(&baseline->environment, &check->run.environment,
					      check->run.arena);
		if (text)
			gaps[count++] = text;
	}
	if (baseline) {
		text = environment_remark(&baseline->environment, &check->run.environment,
					  check->run.arena);
		if (text)
			notes[note_count++] = text;
	}
	check->out->inconclusive = arena_copy(check->run.arena, gaps, count, sizeof *gaps);
	check->out->inconclusive_count = count;
	check->out->notes = arena_copy(check->run.arena, notes, note_count, sizeof *notes);
	check->out->note_count = note_count;
}

void gate_check(const struct gate_question *question, struct gate_result *out)
{
	struct check check = { .question = question, .out = out };

	*out = (struct gate_result){ .path = question->facts->path };
	measure_run(&check.run, question->facts, question->symbols);
	compare_sites(&check.compared, &check.run, question->baseline);
	judge_limits(&check);
	look_for_gaps(&check);
	out->environment = check.run.environment;
	out->program = check.run.program;
	out->arena = check.run.arena;
	check.run.arena = NULL; /* the result owns it */
	measured_free(&check.run);
}

void gate_result_free(struct gate_result *result)
{
	arena_free(result->arena);
	*result = (struct gate_result){ 0 };
}

/* ---- words of a finding, and the exit status that a result comes to ---- */

const char *const gate_status_names[GATE_STATUS_MAX] = {
	"ok", "suppressed", "inconclusive", "exceeded",
};

enum { STATUS_FINE = 0, STATUS_EXCEEDED = 1, STATUS_INCONCLUSIVE = 3 };

int gate_exit_status(const struct gate_result *result)
{
	bool inconclusive = result->inconclusive_count;

	for (size_t i = 0; i < result->finding_count; i++) {
		if (result->findings[i].status == GATE_EXCEEDED)
			return STATUS_EXCEEDED;
		if (result->findings[i].status == GATE_INCONCLUSIVE)
			inconclusive = true;
	}
	return inconclusive ? STATUS_INCONCLUSIVE : STATUS_FINE;
}
