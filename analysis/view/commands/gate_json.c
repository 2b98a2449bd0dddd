/* SPDX-License-Identifier: Apache-2.0 */
/* The document cuflight.check/1. */
#include "analysis/view/commands/gate_view.h"

#include <json-c/json.h>
#include "analysis/base/clean.h"
#include "analysis/view/commands/json_values.h"

static struct json_object *value_json(const struct gate_value *value)
{
	struct json_object *object = json_object_new_object();

	value_add_number(object, "value", value->value);
	value_add_number(object, "low", value->low);
	value_add_number(object, "high", value->high);
	value_add_text(object, "why", *value->why ? value->why : NULL);
	return object;
}

static struct json_object *spread_json(const struct gate_spread *spread)
{
	struct json_object *object;

	if (!spread->runs)
		return NULL;
	object = json_object_new_object();
	value_add_number(object, "median", spread->median);
	value_add_number(object, "least", spread->least);
	value_add_number(object, "most", spread->most);
	value_add_number(object, "mad", spread->mad);
	value_add_number(object, "runs", spread->runs);
	return object;
}

static struct json_object *finding_json(const struct gate_finding *finding)
{
	struct json_object *object = json_object_new_object();
	struct json_object *sites = json_object_new_array();
	const struct gate_measure *measure = finding->limit.measure;

	value_add_text(object, "measure", measure->name);
	value_add_text(object, "unit", measure->unit == GATE_BYTES ? "bytes" : "count");
	value_add_text(object, "limit", finding->limit.text);
	value_add_text(object, "origin", *finding->limit.origin ? finding->limit.origin : NULL);
	value_add_text(object, "phase", finding->limit.phase);
	value_add_text(object, "status", gate_status_names[finding->status]);
	value_add_text(object, "message", finding->message);
	json_object_object_add(object, "observed", value_json(&finding->observed));
	value_add_number(object, "allowed", finding->allowed);
	value_add_number(object, "suppressed", finding->suppressed_bytes);
	json_object_object_add(object, "baseline", spread_json(&finding->baseline));
	for (size_t i = 0; i < finding->site_count; i++)
		json_object_array_add(sites, value_site(&finding->sites[i]));
	json_object_object_add(object, "sites", sites);
	return object;
}

void gate_json(FILE *out, const struct gate_result *result)
{
	static const char *const verdicts[] = { "pass", "fail", "", "inconclusive" };
	struct json_object *document = json_object_new_object();
	struct json_object *findings = json_object_new_array();

	value_add_text(document, "schema", "cuflight.check/1");
	value_add_text(document, "verdict", verdicts[gate_exit_status(result)]);
	value_add_text(document, "recording", result->path);
	value_add_text(document, "program", result->program);
	value_add_text(document, "baseline", result->baseline);
	json_object_object_add(document, "environment", value_environment(&result->environment));
	for (size_t i = 0; i < result->finding_count; i++)
		json_object_array_add(findings, finding_json(&result->findings[i]));
	json_object_object_add(document, "findings", findings);
	json_object_object_add(document, "inconclusive",
			       value_texts(result->inconclusive, result->inconclusive_count));
	json_object_object_add(document, "notes",
			       value_texts(result->notes, result->note_count));
	value_print(document, out);
}
