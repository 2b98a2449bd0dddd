/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites that print as one row, by the rule of the first screen (place_shares_row). Contract:
 * an array as long as timeline->sites, which the caller frees: for each site the index of the one
 * that stands for its row, the first. Sites of different layers never share a row, nor does a rest.
 */
#pragma once

#include "analysis/facts/places.h"
#include "analysis/facts/history/timeline.h"

uint32_t *site_rows(const struct timeline *timeline, struct places *places);
