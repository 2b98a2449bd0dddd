/* SPDX-License-Identifier: Apache-2.0 */
/* Two lines a row: what is changed, as it is typed, and what it gives. */
#include "analysis/view/commands/what_if_view.h"

#include "analysis/base/clean.h"
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"

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

/* ---- JSON ---- */

static const void *judged_row(const struct fields *fields, const void *object)
{
	const struct what_if_row *row = object;

	return row->result.why_not ? NULL : row;
}

static const struct words kind_words = WORDS(NULL, trial_kind_names, .is_open = true);

#define OF struct what_if_row
static const struct field row_fields[] = {
	{ "kind", NAME(trial.kind, kind_words),
	  .meaning = "recorded, setting, allocator or work" },
	{ "id", TEXT(trial.id), .meaning = "a word that stays the same" },
	{ "change", TEXT(trial.typed),
	  .meaning = "the setting as it is typed, or the change in words" },
	{ "knob", TEXT_OR_NULL(trial.knob), .meaning = "the name of the setting" },
	{ "fits", .base = judged_row, FIELD(FLAG, true, result.fits),
	  .meaning = "every request is served; null: cannot be judged" },
	{ "why_not", TEXT_OR_NULL(result.why_not), .meaning = "why it cannot be judged" },
	{ "room_bytes", .base = judged_row, NUMBER(result.room_bytes),
	  .meaning = "what a further request could have, after the one that failed" },
	{ "peak_room_bytes", .base = judged_row, NUMBER(result.peak_room_bytes),
	  .meaning = "the same where it was least" },
	{ "peak_reserved_bytes", .base = judged_row, NUMBER(result.peak_reserved_bytes),
	  .meaning = "the most that the allocator had of the driver" },
	{ "unused_bytes", .base = judged_row, NUMBER(result.unused_bytes),
	  .meaning = "reserved and not allocated at the end of the replay" },
	{ "driver_calls", .base = judged_row, NUMBER(result.driver_calls) },
	{ "refused_bytes", .base = judged_row, NUMBER(result.refused_bytes),
	  .meaning = "the request at which the replay was refused; null: none" },
};
static const struct shape row_shape = SHAPE("row", row_fields);
#undef OF

static struct json_object *by(const struct fields *fields, const void *object)
{
	const struct trace_step *step = object;

	return json_text(step->kind == CUF_KIND_FRAMEWORK ? "framework" : "driver");
}

static struct json_object *is_complete(const struct fields *fields, const void *object)
{
	const struct trace *trace = object;

	return json_object_new_boolean(!trace->old_count);
}

#define OF struct trace_step
static const struct field request_fields[] = {
	{ "requested_bytes", COUNT(bytes) },
	{ "seq", COUNT(seq) },
	{ "by", VALUE(TEXT, by), .meaning = "framework or driver: who was asked" },
};
static const struct shape request_shape = SHAPE(NULL, request_fields);
#undef OF

#define OF struct trace
static const struct field history_fields[] = {
	{ "complete", VALUE(FLAG, is_complete), .meaning = "false: older events were overwritten, "
	  "and what was live then is placed anew" },
	{ "steps", COUNT(count), .meaning = "requests and frees that were played" },
	{ "old_blocks", COUNT(old_count), .meaning = "live where the history begins" },
	{ "groups", COUNT(group_count),
	  .meaning = "streams and private pools that were distinguished" },
	{ "framework", TEXT(framework) },
	{ "version", TEXT(version) },
	{ "settings", TEXT(settings), .meaning = "of PYTORCH_CUDA_ALLOC_CONF as recorded" },
};
static const struct shape history_shape = SHAPE(NULL, history_fields);
#undef OF

static const void *run_of(const struct fields *fields, const void *object)
{
	const struct what_if_view *view = object;

	return view->what_if->trace;
}

static const void *refused_of(const struct fields *fields, const void *object)
{
	return trace_refused(run_of(fields, object));
}

static const void *what_if_of(const struct fields *fields, const void *object)
{
	const struct what_if_view *view = object;

	return view->what_if;
}

#define OF struct what_if_view
static const struct field document_fields[] = {
	{ "recording", TEXT(path), .meaning = "as given on the command line" },
	{ "pid", COUNT(pid) },
#undef OF
#define OF struct trace
	{ "device", .base = run_of, COUNT(device),
	  .meaning = "the driver's ordinal in that process" },
	{ "capacity_bytes", .base = run_of, NUMBER(capacity_bytes), .meaning = "what the process "
	  "had of the device and what was free; without the context and other processes" },
	{ "limit_bytes", .base = run_of, NUMBER(limit_bytes), .meaning = "what the framework "
	  "allowed itself, at least; null: no limit was seen" },
	{ "request", FOUND(request_shape, refused_of),
	  .meaning = "the request that failed; null: none did" },
	{ "history", .base = run_of, PART(history_shape) },
#undef OF
#define OF struct what_if
	{ "unlike", .base = what_if_of, TEXT_OR_NULL(unlike), .meaning = "how the replay of the "
	  "recorded setting ends otherwise than the program did; null: it ends alike" },
	{ "rows", .base = what_if_of, LIST(rows, count, row_shape), .meaning = "the recorded "
	  "setting; what fits, the smallest change first; what does not; what cannot be judged" },
};
const struct shape what_if_document = SHAPE("what-if", document_fields, .meaning = "What would "
	"have fitted. Written by cuflight what-if --json. Keys are only added. Bytes are integers, "
	"unknown is null, never 0.");
#undef OF

void what_if_json(FILE *out, const struct what_if_view *view)
{
	struct fields fields = { .document = view };

	fields_print(out, &fields, &what_if_document, view);
}
