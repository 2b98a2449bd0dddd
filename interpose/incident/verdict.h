/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library prints about a fatal failure, on stderr and in the termination log: one line on
 * what failed, one on the likely cause or on what the process holds, one with the command that
 * explains it.
 *
 * Contract: cold, no allocation, no lock, no call of the driver; a pass or two over the ledger
 * (some milliseconds for 100,000 blocks).
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/platform/say.h"

void cuf_verdict_print(const struct cuf_incident *incident);

/*
 * The cause in words, with its names for `cuflight help` in parentheses at the end. False: it
 * cannot be inferred in here, and nothing is added. The rules are the report's in short
 * (analysis/explain/causes_table.c): less, and never another cause.
 */
bool cuf_verdict_cause(const struct cuf_incident *incident, struct cuf_text *text);
