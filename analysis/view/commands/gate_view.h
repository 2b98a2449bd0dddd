/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judgement as text that fits a screen, and as the document cuflight.check/1.
 *
 * Contract: the result is borrowed. Texts of recordings are cleaned. In JSON, keys are only added,
 * bytes and counts are integers, and what is unknown is null.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/finding.h"
#include "analysis/view/json/fields.h"
#include "analysis/base/terminal.h"

void gate_text(FILE *out, const struct gate_result *result, const struct style *style,
	       bool verbose);
void gate_json(FILE *out, const struct gate_result *result);
extern const struct shape check_shape;

/* What these documents and baselines have: words of enum gate_group; members of struct
 * gate_environment, whose texts are of `type`. */
extern const struct words gate_group_words;
#define ENVIRONMENT_FIELDS(type) \
	{ "gpu", type(gpu) }, \
	{ "gpu_bytes", NUMBER(gpu_bytes) }, \
	{ "driver", type(driver) }, \
	{ "frameworks", type(frameworks) }, \
	{ "host", type(host_mode) }, \
	{ "recorder", type(recorder) }
