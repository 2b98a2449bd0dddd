/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What phases needed, as a table and as the document cuflight.phases/1.
 *
 * Contract: only prints; foreign texts are cleaned. The sites of a phase are named by facts and
 * frames, which may be NULL where no phase has any.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/phase_use.h"
#include "analysis/facts/frames.h"
#include "analysis/facts/places.h"
#include "analysis/view/json/fields.h"

struct phases_view {
	const char *path; /* of the recording, as given */
	const struct phase_uses *uses;
	struct frames *frames;
	struct places *places;
};

void phases_text(FILE *out, const struct phases_view *view);
void phases_json(FILE *out, const struct phases_view *view);
extern const struct shape phases_shape;
