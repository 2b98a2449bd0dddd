/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict as JSON: the cause, what speaks for and against it, what to do, and the second best. */
#include "analysis/view/json/json_parts.h"

/*
 * One line of evidence. "against" is true where it weakens the verdict. "seqs" are the numbers
 * of its events in the recording of "pid"; a sample has a time instead.
 */
static struct json_object *json_evidence(const struct facts *facts, struct frames *frames,
					 const struct fact_evidence *line)
{
	struct json_object *object = json_object_new_object(), *seqs = json_object_new_array();
	for (size_t i = 0; i < line->seq_count; i++)
		if (line->seqs[i]) /* 0 is the number of no event */
			json_object_array_add(seqs, json_object_new_uint64(line->seqs[i]));
	json_add_text(object, "text", line->text);
	json_add_bool(object, "against", line->against);
	json_add(object, "pid", json_pid(facts, line->process));
	json_add(object, "seqs", seqs);
	json_add_number(object, "time_ns", line->time_ns);
	json_add(object, "stack", json_stack(frames, &line->stack));
	return object;
}

/*
 * One thing to change. "text" is for people, "knob" and "value" for programs. A change of code
 * has no knob. "by_bytes" is how much it must free at least.
 */
static struct json_object *json_fix(const struct fact_fix *fix)
{
	struct json_object *object = json_object_new_object();
	json_add_text(object, "text", fix->text);
	json_add_text(object, "knob", fix->knob);
	json_add_number(object, "value", fix->value);
	json_add_word(object, "unit", fix->unit);
	json_add_number(object, "by_bytes", fix->by_bytes);
	return object;
}

/* What would have happened without one thing. "endless": nothing would have grown any more. */
static struct json_object *json_counterfactual(const struct fact_counterfactual *fact)
{
	struct json_object *object = json_object_new_object();
	json_add_text(object, "without", fact->without);
	json_add_number(object, "bytes", fact->bytes);
	json_add_bool(object, "fits", fact->fits);
	json_add_bool(object, "endless", fact->endless);
	json_add_double(object, "requests", fact->requests);
	json_add_double(object, "seconds", fact->seconds);
	json_add_text(object, "text", fact->text);
	return object;
}

/* The second most likely cause. null: no other cause came near. */
static struct json_object *json_runner_up(const struct fact_cause *cause)
{
	struct json_object *object;
	if (!cause->runner_up_id)
		return NULL;
	object = json_object_new_object();
	json_add_text(object, "id", cause->runner_up_id);
	json_add_text(object, "name_id", cause->runner_up_name_id);
	json_add_text(object, "name", cause->runner_up_name);
	json_add_double(object, "confidence", cause->runner_up_confidence);
	return object;
}

/*
 * Both ids are written: "id" is the old short form that scripts may depend on, "name_id" the
 * one on the screen and in `cuflight help`.
 */
struct json_object *json_cause(const struct facts *facts, struct frames *frames,
			       const struct fact_cause *cause)
{
	struct json_object *object, *evidence, *fixes, *lacks, *without;
	if (!cause)
		return NULL;
	object = json_object_new_object();
	evidence = json_object_new_array();
	fixes = json_object_new_array();
	lacks = json_object_new_array();
	without = json_object_new_array();
	for (size_t i = 0; i < cause->evidence_count; i++)
		json_object_array_add(evidence, json_evidence(facts, frames, &cause->evidence[i]));
	for (size_t i = 0; i < cause->fix_count; i++)
		json_object_array_add(fixes, json_fix(&cause->fixes[i]));
	for (size_t i = 0; i < cause->lack_count; i++)
		json_object_array_add(lacks, json_text(cause->lacks[i]));
	for (size_t i = 0; i < cause->counterfactual_count; i++)
		json_object_array_add(without, json_counterfactual(&cause->counterfactual[i]));
	json_add_text(object, "id", cause->id);
	json_add_text(object, "name_id", cause->name_id);
	json_add_text(object, "name", cause->name);
	json_add_text(object, "summary", cause->summary);
	json_add_double(object, "confidence", cause->confidence);
	json_add(object, "site", json_stack(frames, &cause->site));
	json_add(object, "evidence", evidence);
	json_add(object, "counterfactual", without);
	json_add(object, "fix", fixes);
	json_add(object, "runner_up", json_runner_up(cause));
	json_add_word(object, "separates", cause->discriminator);
	json_add(object, "lacks", lacks);
	json_add(object, "pid", json_pid(facts, cause->process));
	json_add(object, "device", json_device_ordinal(facts, cause->device));
	return object;
}
