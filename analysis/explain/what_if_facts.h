/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fatal request played again, before causes are judged. Contract: bounded work, nothing where
 * no request of PyTorch was fatal; rows in the arena of the facts.
 */
#pragma once

#include "analysis/facts/facts.h"

struct sweep_consumer;
struct trace_walk;

/* The moment of a process that it begins with; 0: none. */
uint64_t what_ifs_since(const struct facts *facts, const struct facts_options *options,
			uint32_t process);
/* Takes part in the second sweep of a process; NULL: not in that of this one. */
struct trace_walk *listen_for_what_ifs(const struct facts *facts,
				       const struct facts_options *options, uint32_t process,
				       struct sweep_consumer *consumer);
/* When the facts of devices and call sites are complete. Ends the walk. */
struct fact_what_ifs what_ifs_of(const struct facts *facts, struct trace_walk *walk);
