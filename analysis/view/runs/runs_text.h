/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of runs as text, two lines a run, so that it can be printed while runs are read one by
 * one. Contract: facts of one run; nothing is kept.
 */
#ifndef ANALYSIS_VIEW_RUNS_RUNS_TEXT_H
#define ANALYSIS_VIEW_RUNS_RUNS_TEXT_H

#include <stdio.h>
#include "analysis/facts/facts.h"
#include "analysis/view/style.h"

void runs_text_title(FILE *out, const struct style *style, const char *directory, size_t count);
void runs_text_row(FILE *out, const struct style *style, const struct facts *facts);

#endif
