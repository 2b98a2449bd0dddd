/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sites of a pass: those that read alike are one row, leaks come first, then the largest.
 * Contract: as pass.h. Fills sites, site_count and per_request_bytes.
 */
#pragma once

#include "analysis/watch/pass.h"
#include "analysis/facts/places.h"

/* judgement: NULL where the process has ended: then a leak is what growth/ calls one. */
void pass_sites_fill(struct pass *pass, const struct facts *facts,
		     const struct judgement *judgement, struct places *places);
