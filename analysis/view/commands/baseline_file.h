/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a baseline, cuflight.baseline/1: JSON under version control, so it is sorted, with
 * one measure and one call site a line.
 *
 * Contract: what is read is as baseline_finish leaves it, freed by baseline_free.
 */
#pragma once

#include "analysis/gate/baseline.h"
#include "analysis/view/json/fields.h"

extern const struct shape baseline_shape; /* of struct gate_baseline */

/* False: writing failed. */
bool baseline_write(const struct gate_baseline *baseline, FILE *out);
/* 0; or -1 with a sentence in error, and nothing to free. */
int baseline_read(struct gate_baseline *out, const char *path, char *error, size_t error_bytes);
