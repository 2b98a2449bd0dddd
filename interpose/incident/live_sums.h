/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a refused request reports of the live blocks, kept up as they come and go: a pass over
 * 100,000 blocks, and their order by address, would take milliseconds of the program's time then.
 * Contract: any thread, no lock. One mapping, at the first block; where it is refused, or full,
 * nothing is reported, and each change that is in no sum is counted (CUF_LOST_SMALL).
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/format.h"

/* A block was allocated (sign 1) or freed (-1). */
void cuf_live_sums_count(const struct cuf_block *block, int sign);

/*
 * Fills page_hole_bytes, page_free_bytes, pages, pages_partial and the sites of the incident for
 * its device. CUF_UNKNOWN, and no sites: see above.
 */
void cuf_live_sums_read(struct cuf_incident *incident);

/* false: no reservation or mapping of addresses is live. */
bool cuf_live_sums_have_ranges(void);
