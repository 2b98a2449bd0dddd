/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests: the tries of one need are one ladder, and each ladder has an outcome. The rules are told in
 * analysis/model/README.md. Contract: heap memory, freed by ladders_fini; one recording; times are CLOCK_MONOTONIC.
 */
#ifndef ANALYSIS_MODEL_INCIDENTS_H
#define ANALYSIS_MODEL_INCIDENTS_H

#include "analysis/model/ending.h"

struct ladder {
	struct cuf_incident *tries; size_t try_count, try_room; /* in order; the first ones may have been overwritten */
	enum fact_outcome outcome;
	const char *why;          /* constant */
	uint64_t resolved_ns;     /* CUF_UNKNOWN */
};

struct ladders { struct ladder *items; size_t count; };

void ladders_init(struct ladders *ladders, const struct run_process *process, const struct ending *ending);
void ladders_fini(struct ladders *ladders);

#endif
