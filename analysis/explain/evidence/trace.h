/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the history: how memory came to be full, from one pass over the events.
 *
 * Contract: after evidence_device and evidence_live. Sets only signals of its own; what the history
 * shows about signals of the snapshot is returned, and evidence_adjust.h corrects them.
 */
#pragma once

#include "analysis/explain/evidence/evidence.h"

/* What the history shows about the snapshot. All false or 0 where there is no history. */
struct history {
	bool slack_unused; /* far less was freed than is free inside: that was never in use */
	bool has_family; /* the first block of the family was among the events */
	bool family_after_query; /* the program queried free memory right before that block */
	bool cache_churns; /* blocks of the KV cache by name are freed all the time */
	bool side_by_side; /* requests were served at the same time; a unit of them is known */
	uint64_t capture_seq; /* a graph capture; 0 none */
};

struct event_pass;

/* heard: as for event_pass_for. */
struct history evidence_trace(struct evidence *evidence, struct event_pass **heard);

/* Whose demand grew, after the signals of the history are set. demand.c. */
struct demand demand_of(const struct evidence *evidence, struct event_pass *pass);
