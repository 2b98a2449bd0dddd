/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of runs as text, so that it can be printed while runs are read one by one. A run like
 * the one before it, of the same program with the same end and cause, is only counted.
 *
 * Contract: begin, any number of rows, end. A row is the facts of one run; nothing of them is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include "analysis/facts/facts.h"
#include "analysis/view/json/fields.h"
#include "analysis/base/terminal.h"

struct runs_text {
	FILE *out;
	const struct style *style;
	char like[512]; /* program, end and cause of the last row that was printed */
	/* the runs like it that came after it; first is 0: none */
	size_t first, last;
	uint64_t last_start_ns, device_peak, host_peak; /* peaks: the highest; CUF_UNKNOWN: none */
};

void runs_text_begin(struct runs_text *text, FILE *out, const struct style *style,
		     const char *directory, size_t count);
void runs_text_row(struct runs_text *text, const struct facts *facts);
void runs_text_end(struct runs_text *text);

/*
 * The list of runs as JSON, cuflight.list/1: written run by run, so that only one is in memory.
 * Contract: next returns the facts of one run after the other, each until it is called again, and
 * then NULL. Write errors stay in the stream for its owner.
 */
struct runs {
	const char *directory;
	const struct facts *(*next)(void *context);
	void *context;
};
void runs_json(FILE *out, const struct runs *runs);
extern const struct shape runs_shape;
