/* SPDX-License-Identifier: Apache-2.0 */
/* The documents cuflight.check/1 and cuflight.diff/1. */
#include "analysis/view/commands/diff_view.h"
#include "analysis/view/commands/gate_view.h"

enum { STYLE = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED };

static const char *const unit_names[] = { [GATE_BYTES] = "bytes", [GATE_COUNT] = "count" };
static const struct words unit_words = WORDS(NULL, unit_names);
const struct words gate_group_words = WORDS(NULL, gate_group_names, .is_open = true);
static const struct words status_words = WORDS(NULL, gate_status_names),
			  change_words = WORDS(NULL, diff_names);

#define OF struct gate_frame
static const struct field frame_fields[] = {
	{ "function", TEXT_OR_NULL(function) },
	{ "module", TEXT_OR_NULL(module) },
	{ "file", TEXT_OR_NULL(file) },
	{ "line", POSITIVE(line) },
};
static const struct shape gate_frame_shape = SHAPE("frame", frame_fields);
#undef OF

/* site: the member that is one, with a dot; nothing: the struct is one. */
#define SITE_FIELDS(site) \
	{ "kind", NAME(site group, gate_group_words), \
	  .meaning = "device, pinned, managed, framework, host or python" }, \
	{ "site", TEXT(site identity), \
	  .meaning = "modules and functions, innermost first; survives a rebuild" }, \
	{ "function", TEXT(site function), .meaning = "the user's own frame" }, \
	{ "module", TEXT_OR_NULL(site module) }, \
	{ "file", TEXT_OR_NULL(site file) }, \
	{ "line", POSITIVE(site line) }, \
	{ "bytes", NUMBER(site bytes_now), \
	  .meaning = "held now; of request.growth, what stays after each request" }, \
	{ "count", NUMBER(site count_now) }, \
	{ "bytes_before", NUMBER(site bytes_before), \
	  .meaning = "median of the baseline; null: there is none" }, \
	{ "rule", TEXT_OR_NULL(site rule), .meaning = "the suppression that matched" }, \
	{ "stack", LIST(site frames, site frame_count, gate_frame_shape) }

#define OF struct gate_site
static const struct field site_fields[] = { SITE_FIELDS() };
static const struct shape gate_site_shape = SHAPE("site", site_fields);
#undef OF

#define OF struct gate_environment
static const struct field environment_fields[] = { ENVIRONMENT_FIELDS(TEXT_OR_NULL) };
static const struct shape environment_shape = SHAPE("environment", environment_fields);
#undef OF

#define OF struct gate_value
static const struct field value_fields[] = {
	{ "value", NUMBER(value) },
	{ "low", NUMBER(low) },
	{ "high", NUMBER(high), .meaning = "null: no upper bound is known" },
	{ "why", WORD(why) },
};
static const struct shape value_shape = SHAPE(NULL, value_fields);
#undef OF

#define OF struct gate_spread
static const struct field spread_fields[] = {
	{ "median", NUMBER(median) },
	{ "least", NUMBER(least) },
	{ "most", NUMBER(most) },
	{ "mad", NUMBER(mad) },
	{ "runs", NUMBER(runs) },
};
static const struct shape spread_shape = SHAPE(NULL, spread_fields);
#undef OF

static const void *measure_of(const struct fields *fields, const void *object)
{
	const struct gate_finding *finding = object;

	return finding->limit.measure;
}

static const void *known_spread(const struct fields *fields, const void *object)
{
	const struct gate_finding *finding = object;

	return finding->baseline.runs ? &finding->baseline : NULL;
}

#define OF struct gate_measure
static const struct field finding_fields[] = {
	{ "measure", .base = measure_of, TEXT(name) },
	{ "unit", .base = measure_of, NAME(unit, unit_words) },
#undef OF
#define OF struct gate_finding
	{ "limit", TEXT(limit.text), .meaning = "as typed" },
	{ "origin", WORD(limit.origin),
	  .meaning = "file and line of the limit, default, or null for the command line" },
	{ "phase", TEXT_OR_NULL(limit.phase) },
	{ "status", NAME(status, status_words) },
	{ "message", TEXT(message) },
	{ "observed", OBJECT(observed, value_shape) },
	{ "allowed", NUMBER(allowed), .meaning = "what the limit comes to" },
	{ "suppressed", COUNT(suppressed_bytes) },
	{ "baseline", FOUND(spread_shape, known_spread) },
	{ "sites", LIST(sites, site_count, gate_site_shape),
	  .meaning = "who is to blame, the worst first" },
};
static const struct shape finding_shape = SHAPE("finding", finding_fields);
#undef OF

/* By exit status. */
static const char *const verdicts[] = { "pass", "fail", "", "inconclusive" };

static struct json_object *verdict(const struct fields *fields, const void *object)
{
	return json_text(verdicts[gate_exit_status(object)]);
}

#define OF struct gate_result
static const struct field check_fields[] = {
	{ "verdict", VALUE(TEXT, verdict), LIMITS("enum": ["pass", "fail", "inconclusive"]) },
	{ "recording", TEXT(path) },
	{ "program", TEXT(program) },
	{ "baseline", TEXT_OR_NULL(baseline) },
	{ "environment", OBJECT(environment, environment_shape) },
	{ "findings", LIST(findings, finding_count, finding_shape),
	  .meaning = "one for each limit, the worst first" },
	{ "inconclusive", TEXTS(inconclusive, inconclusive_count),
	  .meaning = "sentences: why the run cannot be judged" },
	{ "notes", TEXTS(notes, note_count) },
};
const struct shape check_shape = SHAPE("check", check_fields,
	.meaning = "What cuflight check --json prints. Keys may be added.");
#undef OF

void gate_json(FILE *out, const struct gate_result *result)
{
	struct fields fields = { .document = result };

	fields_print_as(out, STYLE, &fields, &check_shape, result);
}

/* ---- diff ---- */

static const void *compared_measure(const struct fields *fields, const void *object)
{
	const struct diff_measure *row = object;

	return row->measure;
}

#define OF struct gate_measure
static const struct field measure_fields[] = {
	{ "measure", .base = compared_measure, TEXT(name) },
	{ "unit", .base = compared_measure, NAME(unit, unit_words) },
#undef OF
#define OF struct diff_measure
	{ "before", NUMBER(before) },
	{ "now", NUMBER(now) },
};
static const struct shape measure_shape = SHAPE(NULL, measure_fields);
#undef OF

#define OF struct diff_row
static const struct field change_fields[] = {
	SITE_FIELDS(site.),
	{ "change", NAME(change, change_words) },
};
static const struct shape change_shape = SHAPE("site", change_fields);
#undef OF

static struct json_object *moment(const struct fields *fields, const void *object)
{
	const struct gate_diff *diff = object;

	return json_text(diff->at_end ? "end" : "peak");
}

#define OF struct gate_diff
static const struct field diff_fields[] = {
	{ "before", TEXT(before) },
	{ "now", TEXT(now) },
	{ "moment", VALUE(TEXT, moment), LIMITS("enum": ["peak", "end"]) },
	{ "difference", TEXT_OR_NULL(difference), .meaning = "of the environments" },
	{ "measures", LIST_HERE(measures, measure_count, measure_shape) },
	{ "sites", LIST(rows, row_count, change_shape), .meaning = "the biggest change first" },
	{ "left_out", COUNT(left_out),
	  .meaning = "call sites that changed by less than --least" },
};
const struct shape diff_shape = SHAPE("diff", diff_fields,
	.meaning = "What cuflight diff --json prints. Keys may be added.");
#undef OF

void diff_json(FILE *out, const struct gate_diff *diff)
{
	struct fields fields = { .document = diff };

	fields_print_as(out, STYLE, &fields, &diff_shape, diff);
}
