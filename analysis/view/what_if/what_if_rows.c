/* SPDX-License-Identifier: Apache-2.0 */
/* See what_if_rows.h. */
#include "analysis/view/what_if/what_if_rows.h"

#include "analysis/view/json/json_parts.h"

struct json_object *what_if_row_json(const struct what_if_row *row)
{
	const struct play_result *result = &row->result;
	bool judged = !result->why_not;
	struct json_object *object = json_object_new_object();
	json_add_text(object, "kind", trial_kind_names[row->trial.kind]);
	json_add_text(object, "id", row->trial.id);
	json_add_text(object, "change", row->trial.typed);
	json_add_text(object, "knob", row->trial.knob);
	json_add(object, "fits", judged ? json_object_new_boolean(result->fits) : NULL);
	json_add_text(object, "why_not", result->why_not);
	json_add_number(object, "room_bytes", judged ? result->room_bytes : CUF_UNKNOWN);
	json_add_number(object, "peak_room_bytes", judged ? result->peak_room_bytes : CUF_UNKNOWN);
	json_add_number(object, "peak_reserved_bytes",
			judged ? result->peak_reserved_bytes : CUF_UNKNOWN);
	json_add_number(object, "unused_bytes", judged ? result->unused_bytes : CUF_UNKNOWN);
	json_add_number(object, "driver_calls", judged ? result->driver_calls : CUF_UNKNOWN);
	json_add_number(object, "refused_bytes", judged ? result->refused_bytes : CUF_UNKNOWN);
	return object;
}
