/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every part of the text report uses: wrapped words, section titles, stacks, and the
 * sentences that several parts print. Contract: functions print whole lines to text->out,
 * clean foreign texts, and keep within the screen's columns; the one exception is
 * text_command. Nothing is decided here. A struct text borrows all it points to.
 */
#pragma once

#include <stdio.h>
#include "analysis/facts/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/facts/places.h"
#include "analysis/base/terminal.h"
#include "analysis/view/text/report_text.h"

struct text {
	FILE *out;
	const struct facts *facts;
	struct frames *frames;
	struct places *places;
	const struct style *style;
	const struct report_text_options *options;
};

enum {
	TEXT_LINE_BYTES = 2048,
	TEXT_LABEL = 16,     /* columns of a label in the sections */
	TEXT_NO_LIMIT = 1000 /* lines */
};

/*
 * "HEAD words ...", broken between words; later lines begin with `indent` blanks. Head may
 * be "": the first line is indented, too. Words beyond `lines` lines are dropped, at the
 * end of a clause where there is one. Returns the lines used.
 */
unsigned text_words(const struct text *text, enum style_tone tone, const char *head,
		    unsigned indent, unsigned lines, const char *words);
/* "  label         words ...": an entry of a section, as long as it needs to be. */
void text_item(const struct text *text, enum style_tone tone, const char *label, const char *format,
	       ...)
	__attribute__((format(printf, 4, 5)));
/* A command, whole however long it is. */
void text_command(const struct text *text, const char *head, const char *command);
/* An empty line and a title. */
void text_section(const struct text *text, const char *format,
		  ...) __attribute__((format(printf, 2, 3)));
/*
 * Indented, one frame a line; the frames of libc, of the CUDA runtime and of the
 * interpreter's start are left out.
 */
void text_stack(const struct text *text, const struct fact_stack *stack, unsigned indent);
/* The call site in at most `columns` columns: "append_kv (server.c:64) < serve < main". */
void text_place(const struct text *text, const struct fact_stack *stack, size_t columns, char *out,
		size_t bytes);

size_t text_rows(const struct text *text); /* of a table in the sections: --top */

/* Appends to a buffer of `bytes` bytes that holds a text. What does not fit is left out. */
__attribute__((format(printf, 3, 4)))
void text_append(char *words, size_t bytes, const char *format, ...);

const char *text_s(uint64_t count);      /* "1 block", "2 blocks" */
const char *text_verb_s(uint64_t count); /* "1 leaks", "2 leak" */
/* The words if the condition holds, else "": for parts of a format. */
const char *text_if(bool condition, const char *words);
/* The label of the first of several items; the others have none. */
const char *text_label(const char *label, size_t index);
/* "6.00 GiB"; "~6.0 GiB" of a sample. */
struct unit_text text_bytes(uint64_t bytes, enum fact_basis basis);
struct unit_text text_sampled(uint64_t bytes, bool sampled);
/* What failed: "cudaMalloc(2.00 GiB)". */
void text_requested(const struct fact_incident *incident, char *out, size_t bytes);
/* " with 687 MiB of 1.00 GiB left (ulimit -v)"; "": no limit of the process refused it. */
void text_room(const struct fact_incident *incident, char *out, size_t bytes);
/*
 * What was requested in one piece: the driver may have been asked for a larger segment, or
 * for a part of it.
 */
uint64_t text_wanted_bytes(const struct fact_incident *incident);
/* "exit status 1", "killed by signal 9 (Killed)". */
void text_ending(const struct fact_process *process, char *out, size_t bytes);
/* "python3 agent.py", "server". */
void text_program(const struct fact_process *process, char *out, size_t bytes);
const char *text_result_name(uint32_t result); /* "out of memory"; NULL unknown */
const char *text_confidence(double confidence); /* "high", "medium", "low" */
/* The time from start to end; CUF_UNKNOWN. */
uint64_t text_elapsed(uint64_t start_ns, uint64_t end_ns);
