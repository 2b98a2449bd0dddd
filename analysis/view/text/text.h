/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the text report. Contract: every function prints whole lines to text->out, foreign texts cleaned, no
 * line wider than the screen unless said; nothing is decided here. A struct text borrows all it points to.
 */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stdio.h>
#include "analysis/explain/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/view/frames.h"
#include "analysis/view/text/style.h"

struct text {
	FILE *out;
	const struct facts *facts;
	struct frames *frames;
	const struct style *style;
};

enum { TEXT_LABEL = 9, TEXT_LINE_BYTES = 2048, TEXT_ROWS_MAX = 10 /* of a table in the sections */ };

/* "LABEL    words": one line, cut with ".." where the screen ends. */
void text_line(const struct text *text, enum style_tone tone, const char *label, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same, broken over at most `budget` lines of 80 columns, more where the terminal is narrower. Returns the lines used of the budget. */
unsigned text_flow(const struct text *text, enum style_tone tone, const char *label, unsigned budget, const char *words);
void text_section(const struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Indented, one frame a line. */
void text_stack(const struct text *text, const struct fact_stack *stack, unsigned indent);

/* Sentences that more than one part says. */
void text_requested(const struct fact_incident *incident, char *out, size_t bytes); /* "cudaMalloc(2.00 GiB)" */
void text_layers(const struct fact_layer *layers, char *out, size_t bytes);         /* "device 0.62 GiB (upper bound); ..." */
void text_shortage(const struct fact_incident *incident, char *out, size_t bytes);  /* wanted, free, packed */
void text_ending(const struct fact_process *process, char *out, size_t bytes);      /* "exited with status 1" */
size_t text_count_leaks(const struct facts *facts);                                 /* verdicts: the first of facts->leaks */
const char *text_cycle_name(const struct fact_site *site);                          /* "request", or "cycle" where they were inferred */
const char *text_result_name(uint32_t result);                                      /* "out of memory"; NULL unknown */

/* At most `rows` rows and a total; the smallest are summed up. Returns the lines printed. */
unsigned text_owners(const struct text *text, const struct fact_device *device, unsigned rows);

/* The verdict in at most 6 lines: name, why, where, what to do. NULL: none. Returns the lines used. */
unsigned text_cause_lines(const struct text *text, const struct fact_cause *cause);

void text_cause(const struct text *text);         /* the verdict with all that speaks for and against it */
void text_screen(const struct text *text);        /* the first 25 lines */
void text_incidents(const struct text *text);
void text_sites(const struct text *text);         /* leaks, growth */
void text_phases(const struct text *text);
void text_fragmentation(const struct text *text);
void text_segments(const struct text *text, const struct fact_fragmentation *fragmentation);
void text_host(const struct text *text);
void text_processes(const struct text *text);
/* One sentence on a run of several processes: who failed first, who stands out. Returns the lines printed, 0 where there is nothing to say. */
unsigned text_crowd(const struct text *text, unsigned lines);
void text_coverage(const struct text *text);

#endif
