/* SPDX-License-Identifier: Apache-2.0 */
/* The document cuflight.what-if/1. */
#include "analysis/view/what_if/what_if_view.h"

#include "analysis/base/numbers.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/what_if/what_if_rows.h"

static struct json_object *request_json(const struct trace *trace)
{
	const struct trace_step *refused = trace_refused(trace);
	struct json_object *object;
	if (!refused)
		return NULL;
	object = json_object_new_object();
	json_add_number(object, "requested_bytes", refused->bytes);
	json_add_number(object, "seq", refused->seq);
	json_add_text(object, "by", refused->kind == CUF_KIND_FRAMEWORK ? "framework" : "driver");
	return object;
}

static struct json_object *history_json(const struct trace *trace)
{
	struct json_object *object = json_object_new_object();
	json_add(object, "complete", json_object_new_boolean(!trace->old_count));
	json_add_number(object, "steps", trace->count);
	json_add_number(object, "old_blocks", trace->old_count);
	json_add_number(object, "groups", trace->group_count);
	json_add_text(object, "framework", trace->framework);
	json_add_text(object, "version", trace->version);
	json_add_text(object, "settings", trace->settings);
	return object;
}

void what_if_json(FILE *out, const struct what_if_view *view)
{
	const struct what_if *what_if = view->what_if;
	const struct trace *trace = what_if->trace;
	struct json_stream stream;
	json_stream_begin(&stream, out, UINT64_MAX);
	json_stream_object(&stream, NULL);
	json_stream_value(&stream, "schema", json_object_new_string("cuflight.what-if/1"));
	json_stream_value(&stream, "recording", json_text(view->path));
	json_stream_value(&stream, "pid", json_object_new_int64(view->pid));
	json_stream_value(&stream, "device", json_object_new_int64(trace->device));
	json_stream_value(&stream, "capacity_bytes", json_number(trace->capacity_bytes));
	json_stream_value(&stream, "limit_bytes", json_number(trace->limit_bytes));
	json_stream_value(&stream, "request", request_json(trace));
	json_stream_value(&stream, "history", history_json(trace));
	json_stream_value(&stream, "unlike", what_if->unlike ? json_text(what_if->unlike) : NULL);
	json_stream_array(&stream, "rows");
	for (size_t i = 0; i < what_if->count; i++)
		json_stream_value(&stream, NULL, what_if_row_json(&what_if->rows[i]));
	json_stream_close(&stream);
	json_stream_close(&stream);
	json_stream_end(&stream);
}
