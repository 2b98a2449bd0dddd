/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a rule fires. Each series is on its own: the rule fires for it once its condition has held
 * for as long as the rule asks, and again only after it has been false for as long. What a counter
 * counted before is no news.
 *
 * Contract: one thread; times are of one clock that does not go back. firing_look calls `fire` for
 * what is due; fire returns false where it may not happen yet, and is asked again. A sample that is
 * not there counts as false.
 */
#pragma once

#include <stdint.h>
#include "analysis/cmd/live/rule.h"

struct series {
	const struct rule *rule;
	char name[256];
	uint64_t true_since_ns, false_since_ns; /* 0: it is not */
	uint64_t seen_ns;
	double base;      /* of a counter: what is no news */
	bool has_fired;
};

struct firings {
	struct series *series; size_t count, room;
	uint64_t begun_ns; /* CLOCK_REALTIME: processes that are older have counted before */
	size_t left_out;   /* series for which there was no place */
};

typedef bool firing_fire(void *state, const struct rule *rule, const struct rule_sample *sample);

void firing_look(struct firings *firings, const struct rule *rule, const struct watch *watch,
		 uint64_t now_ns, firing_fire *fire, void *state);
void firing_fini(struct firings *firings);
