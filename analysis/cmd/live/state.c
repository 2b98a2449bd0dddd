/* SPDX-License-Identifier: Apache-2.0 */
/* Keys. */
#include "analysis/cmd/live/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void state_init(struct state *state)
{
	*state = (struct state){ .options.gpu = ROWS_ALL_GPUS, .page = 1 };
}

void state_fini(struct state *state)
{
	free(state->sites);
	free(state->processes);
	top_fini(&state->frame);
}

const struct site_row *state_selected(const struct state *state)
{
	return state->selected < state->site_count ? &state->sites[state->selected] : NULL;
}

/* ---- rows ---- */

/* A row as it can be found again in another frame. */
struct mark { char site[PASS_TEXT], process[128]; enum watch_memory memory; unsigned device; };

static bool is_marked(const struct site_row *row, const struct mark *mark, bool is_split)
{
	return row->site->memory == mark->memory && !strcmp(row->site->name, mark->site) &&
	       (!is_split || (!strcmp(row->process->name, mark->process) &&
			      row->site->device == mark->device));
}

static void keep_in_sight(struct state *state)
{
	if (state->selected >= state->site_count)
		state->selected = state->site_count ? state->site_count - 1 : 0;
	if (state->first > state->selected)
		state->first = state->selected;
	if (state->selected >= state->first + state->page)
		state->first = state->selected + 1 - state->page;
}

static void make_rows(struct state *state)
{
	free(state->sites);
	free(state->processes);
	state->sites = rows_of_sites(&state->frame, &state->options, &state->site_count);
	state->processes = rows_of_processes(&state->frame, state->options.is_split,
					     &state->process_count);
}

/* The frame or the options have changed. */
static void renew_rows(struct state *state, const struct mark *mark)
{
	make_rows(state);
	for (size_t i = 0; mark && i < state->site_count; i++)
		if (is_marked(&state->sites[i], mark, state->options.is_split)) {
			state->selected = i;
			break;
		}
	keep_in_sight(state);
}

/* NULL: nothing is selected. */
static const struct mark *mark_selected(const struct state *state, struct mark *mark)
{
	const struct site_row *row = state_selected(state);

	if (!row)
		return NULL;
	memcpy(mark->site, row->site->name, sizeof mark->site);
	memcpy(mark->process, row->process->name, sizeof mark->process);
	mark->memory = row->site->memory;
	mark->device = row->site->device;
	return mark;
}

void state_set_frame(struct state *state, struct top_frame *frame)
{
	struct top_frame before = state->frame;
	const struct mark *mark;
	struct mark room;

	if (state->is_paused) {
		top_fini(frame);
		return;
	}
	mark = mark_selected(state, &room);
	state->frame = *frame;
	renew_rows(state, mark);
	if (state->mode == MODE_STACK && (!mark || !state_selected(state) ||
	    !is_marked(state_selected(state), mark, state->options.is_split)))
		state->mode = MODE_TABLE; /* it holds nothing any more */
	top_fini(&before);
}

/* ---- keys ---- */

static void move(struct state *state, long by)
{
	long to = (long)state->selected + by, last = (long)state->site_count - 1;

	if (to > last)
		to = last;
	state->selected = to > 0 ? (size_t)to : 0;
	keep_in_sight(state);
}

/* In the table the selected row moves, elsewhere the text. */
static bool take_movement(struct state *state, int key)
{
	long page = (long)state->page, by = 0;

	switch (key) {
	case KEY_OF_UP: by = -1; break;
	case KEY_OF_DOWN: by = 1; break;
	case KEY_OF_PAGE_UP: by = -page; break;
	case KEY_OF_PAGE_DOWN: by = page; break;
	case KEY_OF_HOME: by = -100000; break;
	case KEY_OF_END: by = 100000; break;
	default: return false;
	}
	if (state->mode == MODE_TABLE || state->mode == MODE_FILTER) {
		move(state, by);
		return true;
	}
	by += (long)state->scrolled;
	state->scrolled = by > 0 ? (size_t)by : 0;
	return true;
}

static void change_order(struct state *state, enum rows_order order)
{
	state->options.order = order;
	state->selected = 0; /* the largest, whichever that is now */
	renew_rows(state, NULL);
	snprintf(state->message, sizeof state->message, "sorted by %s", rows_order_names[order]);
}

static void change_split(struct state *state)
{
	struct mark room;
	const struct mark *mark = mark_selected(state, &room);

	state->options.is_split = !state->options.is_split;
	renew_rows(state, mark);
	snprintf(state->message, sizeof state->message, "%s", state->options.is_split ?
		 "each process has rows of its own" : "rows of all processes are merged");
}

/* All, 0, 1 ... and all again. */
static void change_gpu(struct state *state)
{
	size_t *gpu = &state->options.gpu;

	*gpu = *gpu >= state->frame.gpu_count ? 0 : *gpu + 1;
	if (*gpu >= state->frame.gpu_count)
		*gpu = ROWS_ALL_GPUS;
	renew_rows(state, NULL);
	if (*gpu == ROWS_ALL_GPUS)
		snprintf(state->message, sizeof state->message, "call sites of all memory");
	else
		snprintf(state->message, sizeof state->message, "call sites of GPU %u only",
			 state->frame.gpus[*gpu].number);
}

static void begin_mode(struct state *state, enum state_mode mode)
{
	if (mode == MODE_STACK && !state_selected(state))
		return;
	if (mode == MODE_FILTER)
		memcpy(state->filter_before, state->options.filter, FILTER_BYTES);
	state->mode = mode;
	state->scrolled = 0;
}

static void take_letter(struct state *state, char key)
{
	if (state->mode != MODE_TABLE && strchr("branmg/", key))
		return; /* of the table, which is not in sight */
	switch (key) {
	case 'q': state->is_over = true; break;
	case 'h': case '?': begin_mode(state, MODE_HELP); break;
	case 'b': change_order(state, ROWS_BY_BYTES); break;
	case 'r': change_order(state, ROWS_BY_RATE); break;
	case 'a': change_order(state, ROWS_BY_AGE); break;
	case 'n': change_order(state, ROWS_BY_NAME); break;
	case 'm': change_split(state); break;
	case 'g': change_gpu(state); break;
	case 'p': case ' ': state->is_paused = !state->is_paused; break;
	case '/': begin_mode(state, MODE_FILTER); break;
	case 's': state->wants_snapshot = true; break;
	case 'k': take_movement(state, KEY_OF_UP); break;
	case 'j': take_movement(state, KEY_OF_DOWN); break;
	default: break;
	}
}

static void change_filter(struct state *state, const char *key, int other)
{
	char *filter = state->options.filter;
	size_t length = strlen(filter);

	if (other == KEY_OF_ENTER) {
		state->mode = MODE_TABLE;
	} else if (other == KEY_OF_ESCAPE) {
		memcpy(filter, state->filter_before, FILTER_BYTES);
		state->mode = MODE_TABLE;
	} else if (other == KEY_OF_BACKSPACE) {
		while (length && ((unsigned char)filter[length - 1] & 0xc0) == 0x80)
			length--; /* the bytes of a character that follow its first */
		filter[length ? length - 1 : 0] = 0;
	} else if (key && length + strlen(key) < FILTER_BYTES) {
		strcpy(filter + length, key);
	}
	renew_rows(state, NULL);
}

/* Out of a stack, of the help, or of a filter. */
static void escape(struct state *state)
{
	if (state->mode == MODE_TABLE)
		*state->options.filter = 0;
	state->mode = MODE_TABLE;
	renew_rows(state, NULL);
}

void state_key(struct state *state, const char *key, int other)
{
	*state->message = 0;
	if (take_movement(state, other))
		return;
	if (state->mode == MODE_FILTER)
		change_filter(state, key, other);
	else if (other == KEY_OF_ESCAPE)
		escape(state);
	else if (other == KEY_OF_ENTER)
		begin_mode(state, state->mode == MODE_TABLE ? MODE_STACK : MODE_TABLE);
	else if (key && *key == 'q' && state->mode != MODE_TABLE)
		state->mode = MODE_TABLE;
	else if (key && !key[1])
		take_letter(state, *key);
}
