/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a long command is, on one line of stderr that is overwritten. Contract: prints nothing
 * unless stderr is a terminal, --quiet was not given and a second has passed. progress_end removes
 * the line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown, wanted;
	const char *unit; /* plural; NULL: events */
	uint64_t begin_ns, next_ns;
};

void progress_begin(struct progress *progress, bool quiet);
/* context: a struct progress. total 0: unknown. */
void progress_step(void *context, uint64_t done, uint64_t total);
void progress_end(struct progress *progress);
