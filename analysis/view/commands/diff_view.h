/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A difference as text that fits a screen, and as the document cuflight.diff/1.
 *
 * Contract: the difference is borrowed. Texts of recordings are cleaned. In JSON, keys are only
 * added, bytes and counts are integers, and what is unknown is null.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/diff.h"
#include "analysis/view/json/fields.h"
#include "analysis/base/terminal.h"

/* rows: call sites to print. */
void diff_text(FILE *out, const struct gate_diff *diff, const struct style *style, size_t rows);
void diff_json(FILE *out, const struct gate_diff *diff);
extern const struct shape diff_shape;
