/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of runs as JSON, cuflight.list/1: written run by run, so that only one is in memory.
 * Contract: begin, any number of rows, end; first is true for the first row. Write errors stay in
 * the stream for its owner.
 */
#ifndef ANALYSIS_VIEW_RUNS_RUNS_JSON_H
#define ANALYSIS_VIEW_RUNS_RUNS_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include "analysis/facts/facts.h"

void runs_json_begin(FILE *out, const char *directory);
void runs_json_row(FILE *out, const struct facts *facts, bool first);
void runs_json_end(FILE *out);

#endif
