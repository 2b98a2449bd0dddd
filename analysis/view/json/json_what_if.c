/* SPDX-License-Identifier: Apache-2.0 */
/* Settings under which the fatal request was played again: key "what_if". */
#include "analysis/view/json/json_parts.h"

#include "analysis/base/numbers.h"

static struct json_object *row_json(const struct fact_what_ifs *what_ifs,
				    const struct fact_what_if *row)
{
	struct json_object *object = json_object_new_object();
	bool judged = !row->why_not;
	json_add_text(object, "kind", row->kind);
	json_add_text(object, "id", row->id);
	json_add_text(object, "change", row->change);
	json_add_text(object, "knob", row->knob);
	json_add(object, "fits", judged ? json_object_new_boolean(row->fits) : NULL);
	json_add_text(object, "why_not", row->why_not);
	json_add_number(object, "room_bytes", judged ? row->room_bytes : CUF_UNKNOWN);
	json_add_number(object, "peak_reserved_bytes",
			judged ? row->peak_reserved_bytes : CUF_UNKNOWN);
	json_add_number(object, "incident", what_ifs->incident);
	json_add_text(object, "unlike", what_ifs->unlike);
	json_add_bool(object, "complete", what_ifs->complete);
	return object;
}

struct json_object *json_what_ifs(const struct fact_what_ifs *what_ifs)
{
	struct json_object *rows = json_object_new_array();
	for (size_t i = 0; i < what_ifs->count; i++)
		json_object_array_add(rows, row_json(what_ifs, &what_ifs->rows[i]));
	return rows;
}
