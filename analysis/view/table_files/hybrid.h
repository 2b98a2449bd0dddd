/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parquet's hybrid of run lengths and packed bits, for small numbers: which values are null, and
 * the places of texts in a dictionary. Contract: every number fits in `width` bits, 1 to 32.
 */
#ifndef VIEW_TABLE_FILES_HYBRID_H
#define VIEW_TABLE_FILES_HYBRID_H

#include "analysis/view/table_files/bytes.h"

void hybrid_add(struct bytes *out, const uint32_t *numbers, size_t count, unsigned width);
/* The bits that a number of this size needs, at least 1. */
unsigned hybrid_width(uint32_t largest);

#endif
