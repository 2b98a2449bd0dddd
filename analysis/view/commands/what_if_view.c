/* SPDX-License-Identifier: Apache-2.0 */
/* Two lines a row: what is changed, as it is typed, and what it gives. */
#include "analysis/view/commands/what_if_view.h"

#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/view/json/json_parts.h"

enum { TYPED_BYTES = 512, SCREEN_ROWS = 6 /* on a terminal of 24 lines */ };

static const char *layer_of(const struct trace_step *refused)
{
	switch (refused->kind) {
	case CUF_KIND_FRAMEWORK: return " for PyTorch";
	case CUF_KIND_ASYNC: return " from a memory pool";
	default: return "";
	}
}

static void print_question(FILE *out, const struct what_if_view *view)
{
	const struct trace *trace = view->what_if->trace;
	const struct trace_step *refused = trace_refused(trace);
	if (refused)
		fprintf(out, "The request that failed: %s%s", units_bytes(refused->bytes).s,
			layer_of(refused));
	else
		fputs("No request failed", out);
	fprintf(out, ", GPU %u, %s for this process\n", trace->device,
		units_bytes(trace->capacity_bytes).s);
}

static void print_history(FILE *out, const struct what_if_view *view)
{
	const struct trace *trace = view->what_if->trace;
	uint64_t requests = 0;
	for (size_t kind = 0; kind < 16; kind++)
		requests += trace->kind_count[kind];
	fprintf(out, "Replayed: %s requests", units_count(requests).s);
	if (*trace->framework)
		fprintf(out, " of %s%s%s", trace->framework, *trace->version ? " " : "",
			trace->version);
	if (trace->group_count > 1)
		fprintf(out, ", %u groups of streams or graphs", trace->group_count);
	if (!trace->old_count) {
		fputs(", from the first one\n", out);
		return;
	}
	fprintf(out, ",\nof which %s were live when the history begins",
		units_count(trace->old_count).s);
	if (trace->count > trace->old_count)
		fprintf(out, ", after %s",
			units_duration(subtract_to_zero(trace->steps[trace->old_count].time_ns,
							view->start_ns)).s);
	fputs("; these are placed anew\n", out);
}

static void print_figures(FILE *out, const struct play_result *result, bool is_recorded,
			  const struct what_if_view *view)
{
	bool whole = result->fits;
	enum style_tone tone = whole ? STYLE_GOOD : STYLE_BAD;
	fprintf(out, "  %s%-9s%s", style_on(view->style, tone), whole ? "fits" : "no",
		style_off(view->style));
	fprintf(out, "%12s", whole ? units_bytes(result->room_bytes).s : "-");
	fprintf(out, "%12s", whole ? units_bytes(result->peak_room_bytes).s : "-");
	fprintf(out, "%12s", units_bytes(result->peak_reserved_bytes).s);
	fprintf(out, "%12s", units_bytes(result->unused_bytes).s);
	fprintf(out, "%11s", units_count(result->driver_calls).s);
	if (!whole && !is_recorded && view->all)
		fprintf(out, "\n           refused there: %s",
			units_bytes(result->refused_bytes).s);
	fputc('\n', out);
}

static void print_row(FILE *out, const struct what_if_row *row, const struct what_if_view *view)
{
	char typed[TYPED_BYTES];
	clean_terminal(typed, sizeof typed, row->trial.typed, false);
	fprintf(out, "%s\n", typed);
	if (row->result.why_not) {
		clean_terminal(typed, sizeof typed, row->result.why_not, false);
		fprintf(out, "  cannot be judged: %s\n", typed);
	} else {
		print_figures(out, &row->result, row->trial.kind == TRIAL_RECORDED, view);
	}
}

void what_if_text(FILE *out, const struct what_if_view *view)
{
	const struct what_if *what_if = view->what_if;
	size_t shown = what_if->count;
	print_question(out, view);
	print_history(out, view);
	if (what_if->unlike)
		fprintf(out, "%sCaution:%s %s,\nso the rows below are weak evidence\n",
			style_on(view->style, STYLE_WARN), style_off(view->style), what_if->unlike);
	fprintf(out, "\n%s%11s%24s%12s%12s%11s\n", style_on(view->style, STYLE_HEAD), "",
		"one more that would fit", "reserved", "of it not", "calls to");
	fprintf(out, "  %-9s%12s%12s%12s%12s%11s%s\n", "", "then", "at the peak", "at the peak",
		"used", "the driver", style_off(view->style));
	if (!view->all)
		shown = least_of(shown, SCREEN_ROWS);
	for (size_t i = 0; i < shown; i++)
		print_row(out, &what_if->rows[i], view);
	if (shown < what_if->count)
		fprintf(out, "\n%zu more rows are shown with --all", what_if->count - shown);
	if (view->would_pack)
		fputs("\nWith every gap closed the request would have fitted: allocate what lives "
		      "long\nfirst, or from one pool (cudaMallocAsync).", out);
	if (!view->all)
		fputs("\nMore: --all; --set NAME=VALUE plays one setting; man cuflight-what-if\n",
		      out);
}

static struct json_object *row_json(const struct what_if_row *row)
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

/* The document cuflight.what-if/1. */
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
		json_stream_value(&stream, NULL, row_json(&what_if->rows[i]));
	json_stream_close(&stream);
	json_stream_close(&stream);
	json_stream_end(&stream);
}
