/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests of a run are played again: those up to the request that the report is about, or of
 * the whole run where none failed. Contract: the trace is the caller's; NULL with *why, a clause,
 * when there is nothing to play. symbols: names of functions that the recorder did not note; NULL
 * for none. steps_max: as in trace_options.
 */
#ifndef ANALYSIS_EXPLAIN_REPLAYED_H
#define ANALYSIS_EXPLAIN_REPLAYED_H

#include "analysis/facts/facts.h"
#include "analysis/replay/run.h"
#include "analysis/what_if/trace.h"

struct replayed {
	const struct fact_incident *incident; /* NULL: none failed */
	uint32_t process;
};

struct trace *replayed_trace(struct run *run, const struct facts *facts, struct symbols *symbols,
			     size_t steps_max, struct replayed *about, const char **why);

#endif
