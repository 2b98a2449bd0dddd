/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs, as of now: one frame for people, or one document cuflight.live/1 on one line.
 * Contract: as view/metrics/metrics.h. JSON: bytes and counts are integers, unknown is null, keys
 * are only added.
 */
#ifndef VIEW_TOP_FRAME_H
#define VIEW_TOP_FRAME_H

#include <stdio.h>
#include "analysis/watch/watch.h"

void top_text(FILE *out, const struct watch *watch, unsigned rows);
void top_json(FILE *out, const struct watch *watch);

/* A page that asks for that document and shows it in place. */
extern const char live_page[];

#endif
