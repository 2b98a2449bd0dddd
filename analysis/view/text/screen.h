/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the first screen. Contract: each prints whole lines to text->out, or
 * nothing; screen.c gives each its place and its budget. tight: 0 to 3, how much a part
 * leaves out so that the table of holders has room.
 */
#pragma once

#include "analysis/view/text/text.h"

void screen_print(const struct text *text);
/* Whom its table is about; the caller frees it. No rows where it has no table. */
struct holders;
void screen_holders(const struct text *text, struct holders *holders);

void screen_head(const struct text *text, unsigned tight);  /* what happened */
/* of a run of several: who failed first, in a sentence; also under the title of the long report */
void screen_group(const struct text *text);
/* of a run of several: a row for each that failed or held memory, in at most so many lines */
void screen_processes(const struct text *text, unsigned lines);
/* the lines that three processes want, or two; 0: there are not as many */
unsigned screen_processes_least(const struct text *text);
void screen_cause(const struct text *text, unsigned tight); /* the likely cause and its fix */
void screen_also(const struct text *text);                  /* a second finding */
void screen_failed(const struct text *text);                /* where the request failed */
void screen_notes(const struct text *text, unsigned tight); /* what could change the answer */
void screen_more(const struct text *text);                  /* the next commands */
