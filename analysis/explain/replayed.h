/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests of a run are played again: those up to the request that the report is about, or of
 * the whole run where none failed. Contract: the trace is the caller's; NULL when there is nothing
 * to play. steps_max: as in trace_options.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/what_if/trace.h"

struct replayed {
	const struct fact_incident *incident; /* NULL: none failed */
	uint32_t process;
};

/* For the second sweep of a process; NULL: the trace is not about this one. */
/* The moment that it begins with; 0: the start, or another process. */
uint64_t replayed_since(const struct facts *facts, uint32_t process, size_t steps_max);
struct trace_walk *replayed_begin(const struct facts *facts, uint32_t process, size_t steps_max,
				  struct sweep_consumer *consumer);
/* When the facts of devices and call sites are complete. */
struct trace *replayed_trace(struct trace_walk *walk, const struct facts *facts,
			     struct replayed *about);
