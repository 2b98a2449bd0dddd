/* SPDX-License-Identifier: Apache-2.0 */
/* The document cuflight.diff/1. */
#include "analysis/view/commands/diff_view.h"

#include "analysis/view/commands/json_values.h"

static struct json_object *measure_json(const struct diff_measure *row)
{
	struct json_object *object = json_object_new_object();

	value_add_text(object, "measure", row->measure->name);
	value_add_text(object, "unit", row->measure->unit == GATE_BYTES ? "bytes" : "count");
	value_add_number(object, "before", row->before);
	value_add_number(object, "now", row->now);
	return object;
}

void diff_json(FILE *out, const struct gate_diff *diff)
{
	struct json_object *document = json_object_new_object();
	struct json_object *measures = json_object_new_array();
	struct json_object *sites = json_object_new_array();

	value_add_text(document, "schema", "cuflight.diff/1");
	value_add_text(document, "before", diff->before);
	value_add_text(document, "now", diff->now);
	value_add_text(document, "moment", diff->at_end ? "end" : "peak");
	value_add_text(document, "difference", diff->difference);
	for (size_t i = 0; i < diff->measure_count; i++)
		json_object_array_add(measures, measure_json(&diff->measures[i]));
	json_object_object_add(document, "measures", measures);
	for (size_t i = 0; i < diff->row_count; i++) {
		struct json_object *site = value_site(&diff->rows[i].site);
		value_add_text(site, "change", diff_names[diff->rows[i].change]);
		json_object_array_add(sites, site);
	}
	json_object_object_add(document, "sites", sites);
	value_add_number(document, "left_out", diff->left_out);
	value_print(document, out);
}
