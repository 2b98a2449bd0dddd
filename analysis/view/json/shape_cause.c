/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict: the cause, what speaks for and against it, what to do, and the second best. */
#include "analysis/view/json/shapes.h"

/* 0 is the number of no event. */
static struct json_object *seqs(const struct fields *fields, const void *object)
{
	const struct fact_evidence *line = object;
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < line->seq_count; i++)
		if (line->seqs[i])
			json_object_array_add(array, json_object_new_uint64(line->seqs[i]));
	return array;
}

#define OF struct fact_evidence
static const struct field evidence_fields[] = {
	{ "text", TEXT(text) },
	{ "against", FLAG(against), .meaning = "speaks against the cause" },
	{ "pid", PROCESS(process) },
	{ "seqs", VALUE(ANY, seqs), .meaning = "events of that process's recording that show it",
	  LIMITS("type": "array", "items": {"type": "integer", "minimum": 1}) },
	{ "time_ns", NUMBER(time_ns), .meaning = "of a sample that shows it" },
	{ "stack", STACK(stack) },
};
static const struct shape evidence_shape = SHAPE(NULL, evidence_fields);
#undef OF

#define OF struct fact_counterfactual
static const struct field counterfactual_fields[] = {
	{ "without", TEXT(without) },
	{ "bytes", NUMBER(bytes), .meaning = "that it frees" },
	{ "fits", FLAG(fits), .meaning = "the failed request, then" },
	{ "endless", FLAG(endless), .meaning = "nothing would have grown any more" },
	{ "requests", REAL(requests), LIMITS("minimum": 0),
	  .meaning = "how many more; null: unknown, endless, or it does not fit" },
	{ "seconds", REAL(seconds), LIMITS("minimum": 0),
	  .meaning = "how much longer, likewise" },
	{ "text", TEXT(text) },
};
static const struct shape counterfactual_shape = SHAPE(NULL, counterfactual_fields);
#undef OF

/* "text" is for people, "knob" and "value" for programs. A change of code has no knob. */
#define OF struct fact_fix
static const struct field fix_fields[] = {
	{ "text", TEXT(text) },
	{ "knob", TEXT_OR_NULL(knob), .meaning = "the setting's name; null: no setting" },
	{ "value", NUMBER(value), .meaning = "that would fit" },
	{ "unit", WORD(unit),
	  LIMITS("enum": ["bytes", "count", "percent", "seconds", "bytes_per_s", null]) },
	{ "by_bytes", NUMBER(by_bytes), .meaning = "what it must give at least" },
};
static const struct shape fix_shape = SHAPE(NULL, fix_fields);
#undef OF

/* NULL: no other cause came near. */
static const void *with_runner_up(const struct fields *fields, const void *object)
{
	const struct fact_cause *cause = object;

	return cause->runner_up_id ? cause : NULL;
}

#define OF struct fact_cause
static const struct field runner_up_fields[] = {
	{ "id", TEXT(runner_up_id) },
	{ "name_id", TEXT(runner_up_name_id) },
	{ "name", TEXT(runner_up_name) },
	{ "confidence", FIELD(REAL, false, runner_up_confidence) },
};
static const struct shape runner_up_shape = SHAPE(NULL, runner_up_fields);

/* "id" is the old short form that scripts may depend on, "name_id" the one on the screen. */
static const struct field cause_fields[] = {
	{ "id", TEXT(id), .meaning = "cuflight help ID explains it",
	  LIMITS("pattern": "^(S[0-9]([a-z]|[.][A-Za-z0-9]+)?)?$") },
	{ "name_id", TEXT(name_id), .meaning = "the cause in a word: cuflight help NAME explains "
	  "it; empty when inconclusive", LIMITS("pattern": "^([a-z]+(-[a-z]+)*)?$") },
	{ "name", TEXT(name) },
	{ "summary", TEXT(summary) },
	{ "confidence", FIELD(REAL, false, confidence), LIMITS("minimum": 0, "maximum": 1),
	  .meaning = "high from 0.8, medium from 0.5, else low" },
	{ "site", STACK(site), .meaning = "the place in the program that the verdict is about; "
	  "empty: the failing call, or none" },
	{ "evidence", LIST(evidence, evidence_count, evidence_shape) },
	{ "counterfactual", LIST(counterfactual, counterfactual_count, counterfactual_shape),
	  .meaning = "what would have happened without one thing, at the program's own rates; what "
	  "buys most first" },
	{ "fix", LIST(fixes, fix_count, fix_shape) },
	{ "runner_up", FOUND(runner_up_shape, with_runner_up) },
	{ "separates", WORD(discriminator),
	  .meaning = "what tells it from the runner-up, or would" },
	{ "lacks", TEXTS(lacks, lack_count), .meaning = "what could not be seen" },
	{ "pid", PROCESS(process) },
	{ "device", DEVICE(device) },
};
const struct shape cause_shape = SHAPE("cause", cause_fields, .meaning = "why memory ran out, "
	"or what grows; an empty id: what was recorded does not tell");
#undef OF

static const void *judged(const struct fields *fields, const void *object)
{
	const struct fact_what_if *row = object;

	return row->why_not ? NULL : row;
}

static const void *what_ifs(const struct fields *fields, const void *object)
{
	return &fields->facts->what_ifs;
}

#define OF struct fact_what_if
static const struct field what_if_fields[] = {
	{ "kind", TEXT(kind), .meaning = "recorded, setting, allocator or work" },
	{ "id", TEXT(id), .meaning = "a word that stays the same" },
	{ "change", TEXT(change), .meaning = "the setting as it is typed" },
	{ "knob", TEXT_OR_NULL(knob), .meaning = "the name of the setting" },
	{ "fits", .base = judged, FIELD(FLAG, true, fits), .meaning = "every request is served, "
	  "also the one that failed; null: cannot be judged" },
	{ "why_not", TEXT_OR_NULL(why_not), .meaning = "why it cannot be judged" },
	{ "room_bytes", .base = judged, NUMBER(room_bytes),
	  .meaning = "what a further request could have had" },
	{ "peak_reserved_bytes", .base = judged, NUMBER(peak_reserved_bytes) },
	{ "incident", .base = what_ifs, .type = FIELD_NUMBER, IN(struct fact_what_ifs, incident),
	  .meaning = "the request that was played" },
	{ "unlike", .base = what_ifs, .type = FIELD_TEXT, .is_nullable = true,
	  IN(struct fact_what_ifs, unlike), .meaning = "how the replay of the recorded setting "
	  "ends otherwise than the program did; null: it ends alike" },
	{ "complete", .base = what_ifs, .type = FIELD_FLAG, IN(struct fact_what_ifs, complete),
	  .meaning = "false: the oldest events were not played" },
};
const struct shape what_if_shape = SHAPE("what_if", what_if_fields);
#undef OF
