/* SPDX-License-Identifier: Apache-2.0 */
/* The document cuflight.what-if-host/1. */
#include "analysis/view/json/json_parts.h"
#include "analysis/view/what_if/host_view.h"

static struct json_object *row_json(const struct host_replay_row *row)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "change", row->typed);
	json_add_text(object, "allocator", row->allocator);
	json_add(object, "recorded", json_object_new_boolean(row->is_recorded));
	json_add_number(object, "end_bytes", row->end_bytes);
	json_add_number(object, "peak_bytes", row->peak_bytes);
	json_add_number(object, "trimmed_bytes", row->trimmed_bytes);
	json_add_text(object, "why_not", row->why_not);
	return object;
}

static struct json_object *history_json(const struct host_replay *replay)
{
	struct json_object *object = json_object_new_object();

	json_add(object, "complete", json_object_new_boolean(replay->complete));
	json_add(object, "estimated", json_object_new_boolean(replay->estimated));
	json_add_number(object, "steps", replay->step_count);
	json_add_number(object, "threads", replay->thread_count);
	json_add_number(object, "begun_blocks", replay->begun_blocks);
	json_add_number(object, "left_out_blocks", replay->left_out_count);
	json_add_number(object, "live_bytes", replay->live_bytes);
	json_add_number(object, "peak_live_bytes", replay->peak_live_bytes);
	json_add_number(object, "recorded_resident_bytes", replay->recorded_bytes);
	json_add_double(object, "large_blocks_written", replay->touched);
	return object;
}

void host_view_json(FILE *out, const struct host_view *view)
{
	const struct host_replay *replay = view->replay;
	struct json_object *document = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	json_add_text(document, "schema", "cuflight.what-if-host/1");
	json_add_text(document, "recording", view->path);
	json_add_number(document, "pid", view->pid);
	json_add(document, "history", history_json(replay));
	for (size_t i = 0; i < replay->count; i++)
		json_object_array_add(rows, row_json(&replay->rows[i]));
	json_add(document, "rows", rows);
	fprintf(out, "%s\n", json_object_to_json_string_ext(document, JSON_C_TO_STRING_PLAIN));
	json_object_put(document);
}
