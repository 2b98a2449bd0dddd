/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills struct facts from the recordings of an open run: who did what, who held what, what grew.
 * Why memory ran out is not judged here: explain/facts_build.h does, afterwards.
 *
 * Contract: facts_open returns 0, or a negative enum reader_error_code with nothing to close. The
 * facts own the open recordings until facts_close. options may be NULL for facts_open.
 */
#pragma once

#include "analysis/facts/passes/passes.h"

/* Opens the recordings: path, run and arena of facts, the rest is zero. */
int facts_open(struct facts *facts, const char *path, const struct facts_options *options,
	       struct reader_error *error);
/* The same for one recording in memory, which must outlive the facts. */
int facts_open_memory(struct facts *facts, const void *data, size_t bytes,
		      struct reader_error *error);
void facts_close(struct facts *facts);

/* Runs the passes. The listener takes part in the second sweep of each process, when processes,
 * incidents and moments are known. */
void facts_assemble(struct facts *facts, const struct facts_options *options,
		    const struct listener *listener);

/* The same facts with devices[] as of the peak of each device, from the same open recordings. They
 * live as long as the facts. */
const struct facts *facts_at_peak(const struct facts *facts);
