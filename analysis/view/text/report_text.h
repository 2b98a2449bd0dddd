/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text report. Contract: writes facts to out and decides nothing; frames names the
 * stacks. Everything is borrowed for the call. Write errors stay in the stream for its
 * owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "analysis/facts/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/base/terminal.h"

struct report_text_options {
	bool full;           /* the sections after the first screen, too */
	bool verbose;        /* also what hardly ever matters: every gap of coverage, cost */
	size_t rows;         /* of each table in the sections; 0: ten */
	/* what the commands at the end name, quoted for a shell; NULL: nothing */
	const char *operand;
};

/* options may be NULL: the first screen. */
void report_text(FILE *out, const struct facts *facts, struct frames *frames,
		 const struct style *style, const struct report_text_options *options);

/*
 * "GPU memory leak in remember (server.c:86)", for the last lines of `cuflight run`. False:
 * there is no likely cause.
 */
bool report_text_cause(const struct facts *facts, struct frames *frames, char *out, size_t bytes);
