/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running text broken between words. Contract: writes to out, ends with a newline; text is
 * clean (clean.h); columns are of the terminal; a word longer than a line stays whole.
 */
#pragma once

#include <stdio.h>

/* The first word starts at column `from`, where the cursor is; further lines start at `indent`. */
void flow_text(FILE *out, const char *text, unsigned indent, unsigned from, unsigned columns);
