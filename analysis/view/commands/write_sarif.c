/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SARIF 2.1.0: a rule for each measure, a result for each call site of a finding that is not ok.
 * Code scanning recognises a result of an earlier commit by its partial fingerprint, which has no
 * addresses and no lines.
 */
#include <inttypes.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/base/paths.h"
#include "analysis/view/commands/write_parts.h"
#include "analysis/view/json/json_parts.h"

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

static struct json_object *message(const char *text)
{
	struct json_object *message = json_object_new_object();

	json_add_text(message, "text", text);
	return message;
}

static const char *level(enum gate_status status)
{
	switch (status) {
	case GATE_EXCEEDED: return "error";
	case GATE_INCONCLUSIVE: return "warning";
	default: return "note";
	}
}

/* ---- rules ---- */

static struct json_object *rules(void)
{
	struct json_object *rules = json_object_new_array();
	char text[GATE_TEXT_MAX];

	for (size_t i = 0; i < MEASURE_MAX; i++) {
		struct json_object *rule = json_object_new_object();
		snprintf(text, sizeof text, "Limit of %s exceeded.", gate_measures[i].noun);
		json_add_text(rule, "id", gate_measures[i].name);
		json_add(rule, "shortDescription", message(text));
		snprintf(text, sizeof text, "The gate compares %s with a limit or a baseline: %s.",
			 gate_measures[i].name, gate_measures[i].about);
		json_add(rule, "fullDescription", message(text));
		json_add(rule, "help", message("See the manual page cuflight-check(1)."));
		json_object_array_add(rules, rule);
	}
	return rules;
}

/* ---- places ---- */

/* A path as a URI: relative to the root, or file:// */
static void path_to_uri(const char *path, char *out, size_t bytes)
{
	size_t used = 0;

	if (*path == '/')
		used = (size_t)snprintf(out, bytes, "file://");
	for (; *path && used + 4 < bytes; path++) {
		bool plain = strchr("/._-~", *path) || (*path >= '0' && *path <= '9') ||
			     (*path >= 'A' && *path <= 'Z') || (*path >= 'a' && *path <= 'z');
		used += (size_t)snprintf(out + used, bytes - used, plain ? "%c" : "%%%02X",
					 (unsigned char)*path);
	}
	out[used] = 0;
}

static struct json_object *physical(const struct gate_place *place)
{
	struct json_object *physical = json_object_new_object();
	struct json_object *artifact = json_object_new_object();
	struct json_object *region = json_object_new_object();
	char uri[3 * GATE_TEXT_MAX + 16];

	path_to_uri(place->file, uri, sizeof uri);
	json_add_text(artifact, "uri", uri);
	if (*place->file != '/')
		json_add_text(artifact, "uriBaseId", "SRCROOT");
	json_add(physical, "artifactLocation", artifact);
	json_add_number(region, "startLine", place->line ? place->line : 1);
	json_add(physical, "region", region);
	return physical;
}

static struct json_object *location(const struct gate_place *place, const char *function)
{
	struct json_object *location = json_object_new_object();
	struct json_object *logical = json_object_new_object(), *list = json_object_new_array();

	if (*place->file)
		json_add(location, "physicalLocation", physical(place));
	if (function && *function) {
		json_add_text(logical, "fullyQualifiedName", function);
		json_add_text(logical, "kind", "function");
		json_object_array_add(list, logical);
		json_add(location, "logicalLocations", list);
	} else {
		json_object_put(logical);
		json_object_put(list);
	}
	return location;
}

/* ---- results ---- */

static struct json_object *stack(const struct gate_document *document,
				 const struct gate_site *site)
{
	struct json_object *stack = json_object_new_object(), *frames = json_object_new_array();

	for (size_t i = 0; i < site->frame_count; i++) {
		struct gate_site of_frame = { .file = site->frames[i].file,
					      .line = site->frames[i].line };
		struct gate_place place = gate_site_place(document, &of_frame);
		struct json_object *frame = json_object_new_object();
		json_add(frame, "location", location(&place, site->frames[i].function));
		if (site->frames[i].module && *site->frames[i].module)
			json_add_text(frame, "module", site->frames[i].module);
		json_object_array_add(frames, frame);
	}
	json_add(stack, "message", message("allocated here"));
	json_add(stack, "frames", frames);
	return stack;
}

static void add_fingerprint(struct json_object *result, const struct gate_finding *finding,
			    const struct gate_site *site)
{
	struct json_object *prints = json_object_new_object();
	char text[32];

	snprintf(text, sizeof text, "%016" PRIx64, gate_fingerprint(finding, site));
	json_add_text(prints, "cuflightCallSite/v1", text);
	json_add(result, "partialFingerprints", prints);
}

static void add_suppression(struct json_object *result, const char *rule)
{
	struct json_object *list = json_object_new_array(), *item = json_object_new_object();

	json_add_text(item, "kind", "external");
	json_add_text(item, "justification", rule);
	json_object_array_add(list, item);
	json_add(result, "suppressions", list);
}

/* Every result has a place: GitHub rejects documents that have one without. */
static void add_places(const struct gate_document *document, struct json_object *result,
		       const struct gate_finding *finding, const struct gate_site *site)
{
	struct json_object *places = json_object_new_array(), *stacks;
	struct gate_place place = gate_site_place(document, site);

	if (!*place.file)
		place = gate_finding_place(document, finding);
	if (!*place.file)
		clean_terminal(place.file, sizeof place.file,
			       path_base_name(document->result->program), false);
	json_object_array_add(places, location(&place, site ? site->function : NULL));
	json_add(result, "locations", places);
	if (site && site->frame_count) {
		stacks = json_object_new_array();
		json_object_array_add(stacks, stack(document, site));
		json_add(result, "stacks", stacks);
	}
}

static struct json_object *result_of(const struct gate_document *document,
				     const struct gate_finding *finding,
				     const struct gate_site *site)
{
	struct json_object *result = json_object_new_object();
	char text[GATE_TEXT_MAX], sentence[3 * GATE_TEXT_MAX];
	const char *rule = site ? site->rule : finding->rule;

	snprintf(sentence, sizeof sentence, "%s.", finding->message);
	if (site) {
		gate_site_sentence(finding, site, text, sizeof text);
		snprintf(sentence, sizeof sentence, "%s: %s.", finding->message, text);
	}
	json_add_text(result, "ruleId", finding->limit.measure->name);
	json_add_number(result, "ruleIndex", (uint64_t)(finding->limit.measure - gate_measures));
	json_add_text(result, "level", level(finding->status));
	json_add(result, "message", message(sentence));
	add_places(document, result, finding, site);
	add_fingerprint(result, finding, site);
	if (rule)
		add_suppression(result, rule);
	return result;
}

static struct json_object *results(const struct gate_document *document)
{
	const struct gate_result *result = document->result;
	struct json_object *results = json_object_new_array();

	for (size_t i = 0; i < result->finding_count; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if (finding->status == GATE_OK)
			continue;
		for (size_t k = 0; k < finding->site_count && k < GATE_SITES_MAX; k++)
			json_object_array_add(results,
					      result_of(document, finding, &finding->sites[k]));
		if (!finding->site_count)
			json_object_array_add(results, result_of(document, finding, NULL));
	}
	return results;
}

/* ---- the document ---- */

static struct json_object *tool(void)
{
	struct json_object *tool = json_object_new_object(), *driver = json_object_new_object();

	json_add_text(driver, "name", "cuflight");
	json_add_text(driver, "fullName", "cuflight check");
	json_add_text(driver, "version", CUFLIGHT_VERSION);
	json_add_text(driver, "semanticVersion", CUFLIGHT_VERSION);
	json_add(driver, "rules", rules());
	json_add(tool, "driver", driver);
	return tool;
}

/* Why the whole run cannot be judged is a notification of the tool. */
static struct json_object *invocations(const struct gate_result *result)
{
	struct json_object *list = json_object_new_array(), *item = json_object_new_object();
	struct json_object *notes = json_object_new_array();

	for (size_t i = 0; i < result->inconclusive_count; i++) {
		struct json_object *note = json_object_new_object();
		json_add_text(note, "level", "warning");
		json_add(note, "message", message(result->inconclusive[i]));
		json_object_array_add(notes, note);
	}
	json_add_bool(item, "executionSuccessful", true);
	json_add_number(item, "exitCode", (uint64_t)gate_exit_status(result));
	json_add(item, "toolExecutionNotifications", notes);
	json_object_array_add(list, item);
	return list;
}

static struct json_object *bases(void)
{
	struct json_object *bases = json_object_new_object(), *base = json_object_new_object();

	json_add(base, "description", message("The root of the source tree."));
	json_add(bases, "SRCROOT", base);
	return bases;
}

void write_sarif(const struct gate_document *document, FILE *out)
{
	struct json_object *top = json_object_new_object(), *runs = json_object_new_array();
	struct json_object *run = json_object_new_object();

	json_add_text(top, "$schema", SCHEMA);
	json_add_text(top, "version", "2.1.0");
	json_add(run, "tool", tool());
	json_add(run, "invocations", invocations(document->result));
	json_add(run, "originalUriBaseIds", bases());
	json_add_text(run, "columnKind", "unicodeCodePoints");
	json_add(run, "results", results(document));
	json_object_array_add(runs, run);
	json_add(top, "runs", runs);
	print_json(out, top);
}
