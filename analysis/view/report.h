/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report, in its forms. Contract: writes facts as they are to out, decides nothing; frames names the stacks. Write
 * errors stay in the stream for its owner.
 */
#ifndef VIEW_REPORT_H
#define VIEW_REPORT_H

#include <stdio.h>
#include "analysis/explain/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/view/frames.h"
#include "analysis/view/text/style.h"

/* The first 25 lines answer alone; sections with the details follow. */
void report_text(FILE *out, const struct facts *facts, struct frames *frames, const struct style *style);
/* cuflight.report/1, as cuflight.report-1.schema.json describes it. */
void report_json(FILE *out, const struct facts *facts, struct frames *frames);

#endif
