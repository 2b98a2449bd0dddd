/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON report. Contract: writes one document to out, decides nothing; frames names the
 * stacks. Write errors stay in the stream for its owner.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include "analysis/facts/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"

/*
 * cuflight.report/1, as shapes.h describes it. It is written while it is
 * made. False: it would be longer than report_json_limit and was not finished.
 */
bool report_json(FILE *out, const struct facts *facts, struct frames *frames);
/* The same with at most so many rows in each long list. */
bool report_json_rows(FILE *out, const struct facts *facts, struct frames *frames, size_t rows_max);
/* Bytes: 64 MiB, and 64 times what was recorded. */
uint64_t report_json_limit(const struct facts *facts);
