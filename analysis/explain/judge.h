/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verdict that may be asked at any time. Each pass judges what was measured (facts/, growth/)
 * and remembers, for the next one, how long each call site has been in its state.
 *
 *	struct live_judge *judge = live_judge_new(&rules);
 *	every now and then:
 *		facts_build(...); judgement = live_judge_pass(judge, &seen); ... facts_free(...)
 *
 * Contract: pure, apart from what the judge remembers. It reads no clock and no file. What it
 * returns is valid until the next pass, and refers to the facts of this one. One judge is for one
 * run, and for one thread.
 */
#pragma once

#include "analysis/facts/facts.h"

/* JUDGE_WARM_UP_S is what every time in README.md is relative to. */
#define JUDGE_WARM_UP_S 300.0
#define JUDGE_PASSES 3u

struct judge_rules {
	double warm_up_s; /* 0: JUDGE_WARM_UP_S. All other times are in proportion to it */
	/* in a row that change a state, over a fifth of the warm-up; one less make a leak; 1:
	 * whoever asks only once */
	unsigned passes;
};

/* What is judged. Whatever is unknown is CUF_UNKNOWN. */
struct judge_seen {
	const struct facts *facts;
	uint64_t now_ns; /* CLOCK_REALTIME; 0: the time of facts->moment */
	/* As the kernel counts when it kills: without file pages that it can drop. Unknown: what
	 * the recording has of the cgroup, which includes them. */
	uint64_t cgroup_working_bytes;
	uint64_t machine_available_bytes; /* MemAvailable of /proc/meminfo */
};

struct live_judge;
struct live_judge *live_judge_new(const struct judge_rules *rules); /* NULL: the defaults */
void live_judge_free(struct live_judge *judge);                     /* NULL is fine */
const struct judgement *live_judge_pass(struct live_judge *judge, const struct judge_seen *seen);

/* ---- live_facts.c: after facts_assemble, in the arena of the facts ---- */

/* processes[].recent */
void build_recent(struct facts *facts);
/* judgement; of a run that still runs, whatever is not judged yet is no leak any more. warm_up_s:
 * as in facts_options. After build_recent. */
void build_judgement(struct facts *facts, double warm_up_s);
