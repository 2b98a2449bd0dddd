/* SPDX-License-Identifier: Apache-2.0 */
/* Two lines a row: the setting as it is typed, and the resident memory that it leads to. */
#include "analysis/view/commands/host_view.h"

#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/view/clean.h"
#include "analysis/view/json/json_parts.h"

enum { TYPED_BYTES = 512 };
/* What is less than this below the recorded setting is not worth a sentence. */
#define NOTABLE_SHARE 0.9
/* A replay that leaves out more of what was recorded is weak evidence about settings. */
#define LIKE_SHARE 0.7

static const char *bytes_of(const struct host_replay *replay, uint64_t bytes,
			    struct unit_text *text)
{
	*text = replay->estimated ? units_bytes_rough(bytes) : units_bytes(bytes);
	return text->s;
}

static void print_history(FILE *out, const struct host_view *view)
{
	const struct host_replay *replay = view->replay;
	struct unit_text live, peak;

	fprintf(out, "Replayed: %s calls of malloc and free, %u thread%s, %s\n",
		units_count(replay->step_count).s, replay->thread_count,
		replay->thread_count == 1 ? "" : "s",
		replay->estimated ? "as a sample shows them (an estimate)" : "all of them");
	if (!replay->complete)
		fprintf(out, "Older calls were overwritten: %s blocks were live before, without "
			     "the gaps between them\n",
			units_count(replay->begun_blocks).s);
	if (replay->left_out_count)
		fprintf(out, "Left out: %s blocks that lived shortly\n",
			units_count(replay->left_out_count).s);
	fprintf(out, "In blocks: %s at the end, %s at the peak\n",
		bytes_of(replay, replay->live_bytes, &live),
		bytes_of(replay, replay->peak_live_bytes, &peak));
	if (replay->touched < 1)
		fprintf(out, "Of blocks of 64 KiB and more %.0f%% were written, as the recorded "
			     "resident memory shows\n",
			replay->touched * 100);
}

static void print_row(FILE *out, const struct host_replay_row *row, const struct host_view *view)
{
	const char *name = row->typed;
	struct unit_text end, peak, trimmed;
	char typed[TYPED_BYTES];

	clean_terminal(typed, sizeof typed, *name ? name : "nothing set", false);
	fprintf(out, "%s%s (%s)\n", row->is_recorded ? "as recorded: " : "", typed,
		row->allocator);
	if (row->why_not) {
		clean_terminal(typed, sizeof typed, row->why_not, false);
		fprintf(out, "  cannot be judged: %s\n", typed);
		return;
	}
	fprintf(out, "  %16s%16s", bytes_of(view->replay, row->end_bytes, &end),
		bytes_of(view->replay, row->peak_bytes, &peak));
	fprintf(out, "%16s\n", is_known(row->trimmed_bytes) ?
				       bytes_of(view->replay, row->trimmed_bytes, &trimmed) : "-");
}

/* What the process really had, where the replay of the same setting is far below it. */
static bool is_unlike(const struct host_replay *replay)
{
	return replay->count && !replay->rows[0].why_not && is_known(replay->recorded_bytes) &&
	       (double)replay->rows[0].end_bytes < LIKE_SHARE * (double)replay->recorded_bytes;
}

static void print_caution(FILE *out, const struct host_view *view)
{
	struct unit_text replayed;

	if (is_unlike(view->replay))
		fprintf(out,
			"%sCaution:%s the process had %s at its end, the replay has %s. It leaves "
			"out\nwhat a sample passed over and when threads ran: the rows are weak "
			"evidence\n",
			style_on(view->style, STYLE_WARN), style_off(view->style),
			units_bytes(view->replay->recorded_bytes).s,
			bytes_of(view->replay, view->replay->rows[0].end_bytes, &replayed));
}

static void print_sentence(FILE *out, const struct host_view *view)
{
	const struct host_replay_row *recorded = &view->replay->rows[0], *best = recorded + 1;
	struct unit_text now, then;

	if (view->replay->count < 2 || recorded->why_not || best->why_not ||
	    is_unlike(view->replay) ||
	    (double)best->end_bytes > NOTABLE_SHARE * (double)recorded->end_bytes)
		return;
	fprintf(out, "\n%s%s: %s%s instead of %s\n", style_on(view->style, STYLE_GOOD), best->typed,
		bytes_of(view->replay, best->end_bytes, &then), style_off(view->style),
		bytes_of(view->replay, recorded->end_bytes, &now));
}

void host_view_text(FILE *out, const struct host_view *view)
{
	const struct host_replay *replay = view->replay;

	fprintf(out, "Host memory of process %u: resident memory of malloc, measured\n", view->pid);
	print_history(out, view);
	print_caution(out, view);
	fprintf(out, "\n%s  %16s%16s%16s%s\n", style_on(view->style, STYLE_HEAD), "at the end",
		"at the peak", "malloc_trim(0)", style_off(view->style));
	for (size_t i = 0; i < replay->count; i++)
		print_row(out, &replay->rows[i], view);
	print_sentence(out, view);
}

/* The document cuflight.what-if-host/1. */
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
