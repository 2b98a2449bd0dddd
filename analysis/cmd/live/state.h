/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the screen shows and what keys change, without a terminal.
 *
 * Contract: pure. state_set_frame takes the frame over and frees the one before, or frees the new
 * one while the screen is paused. The row that is selected stays selected, wherever it moves.
 */
#pragma once

#include "analysis/view/live/rows.h"

enum state_mode { MODE_TABLE, MODE_FILTER, MODE_STACK, MODE_HELP };

/* Keys that are no characters. */
enum state_key {
	KEY_OF_UP = -100, KEY_OF_DOWN, KEY_OF_PAGE_UP, KEY_OF_PAGE_DOWN, KEY_OF_HOME, KEY_OF_END,
	KEY_OF_ENTER, KEY_OF_ESCAPE, KEY_OF_BACKSPACE
};

struct state {
	struct top_frame frame;
	struct site_row *sites;
	size_t site_count;
	struct process_row *processes;
	size_t process_count;
	struct rows_options options;
	enum state_mode mode;
	char filter_before[FILTER_BYTES]; /* while another one is typed */
	size_t selected, first; /* of sites; the first that is on the screen */
	size_t page;            /* rows that the screen has for them: the drawing sets it */
	size_t scrolled;        /* lines of a stack or of the help */
	bool is_paused, is_over, wants_snapshot;
	char message[320];      /* until the next key; "" */
};

void state_init(struct state *state);
void state_fini(struct state *state);
void state_set_frame(struct state *state, struct top_frame *frame);
/* key: a character as text, or NULL and one of enum state_key in `other`. */
void state_key(struct state *state, const char *key, int other);
const struct site_row *state_selected(const struct state *state); /* NULL: none */
