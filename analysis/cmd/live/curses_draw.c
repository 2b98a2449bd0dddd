/* SPDX-License-Identifier: Apache-2.0 */
/* The table: verdict, GPUs, processes, call sites. */
#include "analysis/cmd/live/curses_draw.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"

enum { WIDE = 110, GPU_LINES = 3, LEAST_SITES = 6 };

/* ---- the head ---- */

static void draw_title(struct drawing *drawing, const struct state *state)
{
	struct unit_text now = units_wall(state->frame.time_ns);
	char right[64], left[512];

	now.s[strcspn(now.s, ".")] = 0;
	snprintf(right, sizeof right, "%s  %s", state->is_paused ? "PAUSED" : "", now.s);
	snprintf(left, sizeof left, "cuflight top  %s", drawing->subject);
	draw_text(drawing, drawing->y, 0, drawing->columns - (int)strlen(right) - 1, TONE_HEAD,
		  left);
	draw_text(drawing, drawing->y++, drawing->columns - (int)strlen(right),
		  (int)strlen(right), state->is_paused ? TONE_WARN : TONE_HEAD, right);
}

static enum tone tone_of(enum top_verdict verdict)
{
	switch (verdict) {
	case VERDICT_GROWING: case VERDICT_FAILED: return TONE_BAD;
	case VERDICT_RISING: case VERDICT_LEVELS: return TONE_WARN;
	case VERDICT_STEADY: return TONE_GOOD;
	default: return TONE_PLAIN;
	}
}

/* That of the process with the worst one; the first of the rows. */
static void draw_verdict(struct drawing *drawing, const struct state *state)
{
	char words[PASS_SENTENCE + 64], line[sizeof words + 160];
	const struct top_process *worst;

	if (!state->process_count) {
		draw_text(drawing, drawing->y++, 0, drawing->columns, TONE_PLAIN,
			  "nothing is recorded now");
		return;
	}
	worst = state->processes[0].process;
	top_words(worst, words, sizeof words);
	snprintf(line, sizeof line, "%s%s%s", state->frame.process_count > 1 ? worst->name : "",
		 state->frame.process_count > 1 ? "  " : "", words);
	draw_text(drawing, drawing->y++, 0, drawing->columns, tone_of(worst->verdict), line);
}

/* ---- GPUs ---- */

static const char letters[WATCH_OWNER_MAX + 1] = "wkcolngxpsfdtu.";

static int draw_bar(struct drawing *drawing, const struct top_gpu *gpu, int x, int width)
{
	uint64_t sum = 0;
	int from = 0;

	for (unsigned owner = 0; owner < WATCH_OWNER_MAX; owner++) {
		int to;

		sum += gpu->owners[owner];
		to = (int)lround(ratio_or_zero((double)sum, (double)gpu->total_bytes) * width);
		draw_cells(drawing, drawing->y, x + from, least_of_int(to, width) - from,
			   letters[owner], owner);
		from = to > from ? least_of_int(to, width) : from;
	}
	return from;
}

static void draw_gpu_bar(struct drawing *drawing, const struct top_gpu *gpu)
{
	uint64_t free_bytes = gpu->is_known ? gpu->owners[WATCH_FREE] : CUF_UNKNOWN;
	char name[24], figures[96];
	int width;

	snprintf(name, sizeof name, "GPU %-3u", gpu->number);
	snprintf(figures, sizeof figures, " %6s of %s",
		 is_known(free_bytes) ? units_percent(gpu->total_bytes - free_bytes,
						      gpu->total_bytes).s : "?",
		 units_bytes(gpu->total_bytes).s);
	width = drawing->columns - (int)strlen(name) - (int)strlen(figures) - 2;
	draw_text(drawing, drawing->y, 0, 8, TONE_HEAD, name);
	draw_text(drawing, drawing->y, (int)strlen(name), 1, TONE_PLAIN, "[");
	if (gpu->is_known)
		draw_bar(drawing, gpu, (int)strlen(name) + 1, width);
	draw_text(drawing, drawing->y, (int)strlen(name) + 1 + width, 1, TONE_PLAIN, "]");
	draw_text(drawing, drawing->y++, drawing->columns - (int)strlen(figures),
		  (int)strlen(figures), TONE_PLAIN, figures);
}

/* The largest owners, as many as there is room for. */
static void draw_legend(struct drawing *drawing, const struct top_gpu *gpu)
{
	bool is_drawn[WATCH_OWNER_MAX] = { false };
	int x = 7;

	for (unsigned turn = 0; gpu->is_known && turn < WATCH_OWNER_MAX; turn++) {
		unsigned most = WATCH_OWNER_MAX;
		char text[64];

		for (unsigned owner = 0; owner < WATCH_OWNER_MAX; owner++)
			if (!is_drawn[owner] && gpu->owners[owner] &&
			    (most == WATCH_OWNER_MAX || gpu->owners[owner] > gpu->owners[most]))
				most = owner;
		if (most == WATCH_OWNER_MAX)
			break;
		is_drawn[most] = true;
		snprintf(text, sizeof text, " %s %s", watch_owner_names[most],
			 units_bytes(gpu->owners[most]).s);
		for (char *c = text; (c = strchr(c, '_')); )
			*c = ' ';
		if (x + 1 + (int)strlen(text) > drawing->columns)
			break;
		draw_cells(drawing, drawing->y, x, 1, letters[most], most);
		draw_text(drawing, drawing->y, x + 1, (int)strlen(text), TONE_PLAIN, text);
		x += (int)strlen(text) + 3;
	}
	drawing->y++;
}

static struct unit_text headroom_text(const struct top_gpu *gpu)
{
	if (isnan(gpu->headroom_bytes) || gpu->headroom_bytes < 0)
		return units_bytes_signed(gpu->headroom_bytes);
	return units_bytes((uint64_t)gpu->headroom_bytes);
}

static void draw_lows(struct drawing *drawing, const struct top_gpu *gpu)
{
	char line[240], block[64];

	if (!gpu->is_known) {
		snprintf(line, sizeof line, "not analysed yet");
	} else {
		snprintf(line, sizeof line, "least free %s in 1 min, %s in 1 h; headroom %s",
			 units_bytes(gpu->free_minute_bytes).s,
			 units_bytes(gpu->free_hour_bytes).s, headroom_text(gpu).s);
		snprintf(block, sizeof block, "; largest block %s",
			 units_bytes(gpu->largest_free_bytes).s);
		if (7 + (int)(strlen(line) + strlen(block)) <= drawing->columns)
			strcat(line, block);
	}
	draw_text(drawing, drawing->y++, 7, drawing->columns - 7, TONE_DIM, line);
}

static void draw_more(struct drawing *drawing, size_t hidden, const char *what)
{
	char line[80];

	if (!hidden)
		return;
	snprintf(line, sizeof line, "  and %zu more %s%s", hidden, what, hidden == 1 ? "" : "s");
	draw_text(drawing, drawing->y++, 0, drawing->columns, TONE_DIM, line);
}

/* At most a third of the screen: where three lines each are too many, one each. */
static void draw_gpus(struct drawing *drawing, const struct state *state)
{
	size_t count = state->frame.gpu_count, most = (size_t)drawing->lines / 3, shown = count;
	bool is_short = count * GPU_LINES > most;

	if (is_short && shown > most)
		shown = most;
	for (size_t i = 0; i < shown; i++) {
		draw_gpu_bar(drawing, &state->frame.gpus[i]);
		if (is_short)
			continue;
		draw_legend(drawing, &state->frame.gpus[i]);
		draw_lows(drawing, &state->frame.gpus[i]);
	}
	draw_more(drawing, count - shown, "GPU");
}

/* ---- processes ---- */

static void name_row(const struct process_row *row, char *out, size_t bytes)
{
	if (row->process_count == 1)
		snprintf(out, bytes, "%s", row->process->name);
	else
		snprintf(out, bytes, "%s, %u ranks", row->process->program, row->process_count);
}

static void draw_process(struct drawing *drawing, const struct process_row *row)
{
	char name[160], pid[16] = "", words[PASS_SENTENCE + 64];
	bool is_wide = drawing->columns >= WIDE;
	int x;

	name_row(row, name, sizeof name);
	if (row->process_count == 1)
		snprintf(pid, sizeof pid, "%u", row->process->pid);
	top_words(row->process, words, sizeof words);
	x = draw_column(drawing, 0, is_wide ? 30 : 16, TONE_PLAIN, name);
	x = draw_figure(drawing, x, 7, pid);
	x = draw_figure(drawing, x, 9, units_bytes(row->gpu_bytes).s);
	if (is_wide)
		x = draw_figure(drawing, x, 9, units_bytes(row->gpu_peak_bytes).s);
	x = draw_figure(drawing, x, 9, units_bytes(row->resident_bytes).s);
	x = draw_figure(drawing, x, 4, units_count(row->failures).s);
	draw_text(drawing, drawing->y++, x + 1, drawing->columns - x - 1,
		  tone_of(row->process->verdict), words);
}

static void draw_process_head(struct drawing *drawing)
{
	bool is_wide = drawing->columns >= WIDE;
	int x = draw_column(drawing, 0, is_wide ? 30 : 16, TONE_BAR, "PROCESS");

	x = draw_figure(drawing, x, 7, "PID");
	x = draw_figure(drawing, x, 9, "ON GPUS");
	if (is_wide)
		x = draw_figure(drawing, x, 9, "PEAK");
	x = draw_figure(drawing, x, 9, "RESIDENT");
	x = draw_figure(drawing, x, 4, "FAIL");
	draw_text(drawing, drawing->y, x + 1, drawing->columns - x - 1, TONE_PLAIN, "VERDICT");
	draw_head_line(drawing);
}

static void draw_processes(struct drawing *drawing, const struct state *state)
{
	size_t room = (size_t)drawing->lines / 6 + 1, shown = state->process_count;

	if (!shown)
		return;
	draw_process_head(drawing);
	if (shown > room)
		shown = room - 1;
	for (size_t i = 0; i < shown; i++)
		draw_process(drawing, &state->processes[i]);
	draw_more(drawing, state->process_count - shown, "process row");
}

/* ---- call sites ---- */

/* Narrow screens have room for six letters. */
static const char *memory_words(const struct site_row *row)
{
	static const char *const words[WATCH_MEMORY_MAX] = { "GPU", "GPU/fw", "host", "pinned" };

	return words[row->site->memory];
}

static void draw_site_head(struct drawing *drawing)
{
	int x = draw_figure(drawing, -1, 9, "BYTES");

	x = draw_figure(drawing, x, 6, "SHARE");
	x = draw_figure(drawing, x, 12, "RATE");
	x = draw_figure(drawing, x, 6, "AGE");
	x = draw_column(drawing, x + 1, 7, TONE_PLAIN, "STATE");
	x = draw_column(drawing, x + 1, 6, TONE_PLAIN, "MEMORY");
	if (drawing->columns >= WIDE) {
		x = draw_column(drawing, x + 1, 10, TONE_PLAIN, "ROLE");
		x = draw_column(drawing, x + 1, 20, TONE_PLAIN, "PROCESS");
	}
	draw_text(drawing, drawing->y, x + 1, drawing->columns - x - 1, TONE_PLAIN, "CALL SITE");
	draw_head_line(drawing);
}

static enum tone tone_of_state(const struct site_row *row)
{
	if (!row->is_judged || row->state == LIVE_STEADY)
		return TONE_PLAIN;
	return row->state >= LIVE_GROWING ? TONE_BAD : TONE_WARN;
}

static void draw_site(struct drawing *drawing, const struct site_row *row)
{
	char rate[48], processes[160];
	int x;

	site_rate(row, rate, sizeof rate);
	if (row->process_count == 1)
		snprintf(processes, sizeof processes, "%s", row->process->name);
	else
		snprintf(processes, sizeof processes, "%u processes", row->process_count);
	x = draw_figure(drawing, -1, 9, units_bytes(row->bytes).s);
	x = draw_figure(drawing, x, 6, units_percent(row->bytes, row->whole_bytes).s);
	x = draw_figure(drawing, x, 12, rate);
	x = draw_figure(drawing, x, 6,
			isnan(row->age_s) ? "" : units_duration((uint64_t)(row->age_s * 1e9)).s);
	x = draw_column(drawing, x + 1, 7, tone_of_state(row),
			row->is_judged ? live_state_names[row->state] : "");
	x = draw_column(drawing, x + 1, 6, TONE_PLAIN, memory_words(row));
	if (drawing->columns >= WIDE) {
		x = draw_column(drawing, x + 1, 10, TONE_PLAIN, row->site->role);
		x = draw_column(drawing, x + 1, 20, TONE_PLAIN, processes);
	}
	draw_text(drawing, drawing->y, x + 1, drawing->columns - x - 1, TONE_PLAIN,
		  row->site->name);
}

static void draw_sites(struct drawing *drawing, struct state *state)
{
	int room = drawing->lines - drawing->y - 2;

	draw_site_head(drawing);
	state->page = room > 1 ? (size_t)room : 1;
	if (state->selected >= state->first + state->page)
		state->first = state->selected + 1 - state->page;
	for (size_t i = state->first; i < state->site_count && i < state->first + state->page;
	     i++) {
		draw_site(drawing, &state->sites[i]);
		if (i == state->selected)
			draw_selected(drawing);
		drawing->y++;
	}
	if (!state->site_count)
		draw_text(drawing, drawing->y, 2, drawing->columns - 2, TONE_DIM,
			  *state->options.filter ? "no call site has that in it" : "none yet");
}

/* ---- the last line ---- */

static void draw_foot(struct drawing *drawing, const struct state *state)
{
	static const char keys[] = "q quit  h help  b r a n sort  / filter  p pause  Enter stack  "
				   "s snapshot";
	static const char more[] = "  m split  g GPU";
	char line[400];

	if (state->mode == MODE_FILTER)
		snprintf(line, sizeof line, "filter: %s_", state->options.filter);
	else if (*state->message)
		snprintf(line, sizeof line, "%s", state->message);
	else if (*state->options.filter)
		snprintf(line, sizeof line, "filter: %s  (Esc: all)", state->options.filter);
	else if (state->mode == MODE_TABLE)
		snprintf(line, sizeof line, "%s%s", keys, drawing->columns >= WIDE ? more : "");
	else
		snprintf(line, sizeof line, "Esc back  s snapshot");
	draw_text(drawing, drawing->lines - 1, 0, drawing->columns, TONE_HEAD, line);
}

void draw_screen(struct drawing *drawing, struct state *state)
{
	draw_begin(drawing);
	if (drawing->lines < 2 || drawing->columns < 20) {
		draw_text(drawing, 0, 0, drawing->columns, TONE_PLAIN, "too small");
		return;
	}
	draw_title(drawing, state);
	if (state->mode == MODE_HELP) {
		draw_help(drawing, state);
	} else if (state->mode == MODE_STACK) {
		draw_stack(drawing, state);
	} else {
		draw_verdict(drawing, state);
		draw_gpus(drawing, state);
		draw_processes(drawing, state);
		draw_sites(drawing, state);
	}
	draw_foot(drawing, state);
}
