/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a judge share. Contract: pure. */
#pragma once

#include "analysis/explain/live/judge.h"

/* The state that these figures suggest, and how long the site has risen. */
enum live_state judge_site(const struct judge_rules *rules, const struct fact_process *process,
			   uint64_t now_ns, struct live_site *site);

/* Resources of the run, at most `most`. Their forecasts are of the states in judgement. */
size_t judge_resources(const struct judge_seen *seen, const struct judgement *judgement,
		       struct live_resource *out, size_t most);
