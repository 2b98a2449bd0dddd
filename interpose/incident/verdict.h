/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library itself says of a fatal failure, in a few lines on stderr and in the termination log: what failed, what
 * was held, and the likely cause as far as it can be told in the process. Contract: cold, no allocation, no lock, no call
 * of the driver; a pass or two over the ledger (some milliseconds for 100,000 blocks).
 */
#ifndef CUF_VERDICT_H
#define CUF_VERDICT_H

#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/platform/say.h"

void cuf_verdict_print(const struct cuf_incident *incident);

/* The cause in words that name its id in `cuflight help`; false: it cannot be told from in here, nothing is added. The rules
 * are the report's in short (analysis/explain/causes_table.c) and say less, never something else. */
bool cuf_verdict_cause(const struct cuf_incident *incident, struct cuf_text *text);

#endif
