/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences on a run that still runs. Contract: nothing where the facts have no judgement. */
#pragma once

#include "analysis/view/text/text.h"

/* "too early to judge: 40 s of 5m00s"; "": it is not. */
void live_early(const struct judgement *judgement, char *out, size_t bytes);
/* The resource that is used up first; NULL: none is proven to be. */
const struct live_resource *live_judged_first(const struct judgement *judgement);
/* What rises and is no finding: one line. */
void live_print_rising(const struct text *text);
/* When the first resource is used up at this rate: one line. */
void live_print_forecast(const struct text *text);
