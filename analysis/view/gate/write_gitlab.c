/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GitLab's code quality report: an array of issues, each with a source line. GitLab drops issues
 * without one, so a finding without a known line points at the file that states its limit, else at
 * the program.
 */
#include <inttypes.h>
#include "analysis/base/paths.h"
#include "analysis/view/gate/write_parts.h"
#include "analysis/view/json/json_parts.h"

static struct json_object *location(const struct gate_document *document,
				    const struct gate_place *place)
{
	struct json_object *location = json_object_new_object();
	struct json_object *lines = json_object_new_object();
	const char *file = place->file;

	if (!*file)
		file = path_base_name(document->result->program);
	json_add_text(location, "path", file);
	json_add_number(lines, "begin", place->line ? place->line : 1);
	json_add(location, "lines", lines);
	return location;
}

static struct json_object *issue(const struct gate_document *document,
				 const struct gate_finding *finding, const struct gate_site *site)
{
	struct json_object *issue = json_object_new_object();
	struct gate_place place = gate_site_place(document, site);
	char text[GATE_TEXT_MAX], sentence[3 * GATE_TEXT_MAX];

	snprintf(sentence, sizeof sentence, "%s", finding->message);
	if (site) {
		gate_site_sentence(finding, site, text, sizeof text);
		snprintf(sentence, sizeof sentence, "%s: %s", finding->message, text);
	}
	if (!*place.file)
		place = gate_finding_place(document, finding);
	json_add_text(issue, "description", sentence);
	json_add_text(issue, "check_name", finding->limit.measure->name);
	snprintf(text, sizeof text, "%016" PRIx64, gate_fingerprint(finding, site));
	json_add_text(issue, "fingerprint", text);
	json_add_text(issue, "severity",
		      finding->status == GATE_EXCEEDED ? "major" : "info");
	json_add(issue, "location", location(document, &place));
	return issue;
}

void write_gitlab(const struct gate_document *document, FILE *out)
{
	const struct gate_result *result = document->result;
	struct json_object *issues = json_object_new_array();

	for (size_t i = 0; i < result->finding_count; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if (finding->status < GATE_INCONCLUSIVE)
			continue;
		for (size_t k = 0; k < finding->site_count && k < GATE_SITES_MAX; k++)
			if (!finding->sites[k].rule)
				json_object_array_add(
					issues, issue(document, finding, &finding->sites[k]));
		if (!finding->site_count)
			json_object_array_add(issues, issue(document, finding, NULL));
	}
	print_json(out, issues);
}
