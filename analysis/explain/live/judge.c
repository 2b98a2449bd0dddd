/* SPDX-License-Identifier: Apache-2.0 */
/* Passes of a judge: what it remembers of each call site, and when that changes its state. */
#include "analysis/explain/live/judge.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/explain/live/judge_parts.h"

enum {
	SITE_LEAST_BYTES = 1 << 20,
	PASSES_A_WARM_UP = 10, /* passes that are closer together count as one */
	HOLDS_A_WARM_UP = 5    /* so long a state is seen before it is believed */
};

/* A call site of a process, through all passes. */
struct site_name {
	uint64_t start_ns;
	uint32_t pid, device, kind, stack;
};

struct kept_site {
	struct site_name name;
	enum live_state state;
	unsigned held[LIVE_STATES]; /* passes in a row that reached the state */
	uint64_t since_ns[LIVE_STATES]; /* the first of them */
};

struct live_judge {
	struct judge_rules rules;
	uint64_t counted_ns; /* the last pass that counted; 0: none */
	struct kept_site *kept;
	size_t kept_count;
	struct judgement judgement;
	struct live_site *sites;
	struct live_resource *resources;
};

struct live_judge *live_judge_new(const struct judge_rules *rules)
{
	struct live_judge *judge = xalloc_zeroed(1, sizeof *judge);

	if (rules)
		judge->rules = *rules;
	if (!(judge->rules.warm_up_s > 0))
		judge->rules.warm_up_s = JUDGE_WARM_UP_S;
	if (!judge->rules.passes)
		judge->rules.passes = JUDGE_PASSES;
	return judge;
}

static void forget_pass(struct live_judge *judge)
{
	free(judge->sites);
	free(judge->resources);
	judge->sites = NULL;
	judge->resources = NULL;
	judge->judgement = (struct judgement){ 0 };
}

void live_judge_free(struct live_judge *judge)
{
	if (!judge)
		return;
	forget_pass(judge);
	free(judge->kept);
	free(judge);
}

/* ---- what is remembered ---- */

static struct site_name site_name_of(const struct fact_process *process,
				     const struct fact_site *site)
{
	struct site_name name;

	memset(&name, 0, sizeof name); /* names are compared as bytes */
	name.start_ns = process->start_ns;
	name.pid = process->pid;
	name.device = site->device;
	name.kind = site->kind;
	name.stack = site->stack.id;
	return name;
}

static const struct kept_site *find_kept(const struct live_judge *judge,
					 const struct site_name *name)
{
	for (size_t i = 0; i < judge->kept_count; i++)
		if (!memcmp(&judge->kept[i].name, name, sizeof *name))
			return &judge->kept[i];
	return NULL;
}

/* A leak grows, too. */
static bool reaches(enum live_state seen, enum live_state state)
{
	return seen == state || (seen == LIVE_LEAK && state == LIVE_GROWING);
}

/* Two passes prove a leak, which has turns of the work, and three anything else. Whoever asks only
 * once believes what it sees. */
static bool is_held(const struct live_judge *judge, const struct kept_site *kept, unsigned state)
{
	uint64_t held_ns = subtract_to_zero(judge->judgement.time_ns, kept->since_ns[state]);
	unsigned passes = judge->rules.passes;

	if (passes > 1 && state == LIVE_LEAK)
		passes--;
	return kept->held[state] >= passes &&
	       (passes == 1 ||
		(double)held_ns / 1e9 * HOLDS_A_WARM_UP >= judge->rules.warm_up_s);
}

/* The state changes when another one was reached for long enough; of two, the graver one. */
static void take_site(const struct live_judge *judge, struct kept_site *kept, enum live_state seen,
		      bool counts)
{
	for (unsigned state = 0; state < LIVE_STATES; state++) {
		if (!reaches(seen, state))
			kept->held[state] = 0;
		else if (counts && !kept->held[state]++)
			kept->since_ns[state] = judge->judgement.time_ns;
		if (is_held(judge, kept, state))
			kept->state = state;
	}
}

/* What nobody has seen before is not accused yet. */
static struct kept_site first_sight(const struct site_name *name, enum live_state seen)
{
	return (struct kept_site){ .name = *name,
				   .state = seen < LIVE_GROWING ? seen : LIVE_WARMING };
}

/* ---- one pass ---- */

static int by_state(const void *a, const void *b)
{
	const struct live_site *left = a, *right = b;

	if (left->state != right->state)
		return compare_numbers(right->state, left->state);
	if (left->site->bytes != right->site->bytes)
		return compare_numbers(right->site->bytes, left->site->bytes);
	return compare_numbers(left->site->stack.id, right->site->stack.id);
}

static bool is_judged(const struct fact_site *site)
{
	return !site->holds_blocks && is_known(site->bytes) && site->bytes >= SITE_LEAST_BYTES;
}

static void judge_sites(struct live_judge *judge, const struct judge_seen *seen)
{
	const struct facts *facts = seen->facts;
	struct judgement *judgement = &judge->judgement;
	struct kept_site *kept = xalloc_zeroed(facts->leak_count, sizeof *kept);
	uint64_t since_ns = subtract_to_zero(judgement->time_ns, judge->counted_ns);
	bool counts = !judge->counted_ns ||
		      (double)since_ns / 1e9 * PASSES_A_WARM_UP >= judge->rules.warm_up_s;
	size_t count = 0;

	judge->sites = xalloc_zeroed(facts->leak_count, sizeof *judge->sites);
	for (size_t i = 0; i < facts->leak_count; i++) {
		struct live_site *live = &judge->sites[count];
		const struct fact_process *process;
		const struct kept_site *before;
		struct site_name name;

		live->site = &facts->leaks[i];
		if (!is_judged(live->site))
			continue;
		process = &facts->processes[live->site->process];
		live->state = judge_site(&judge->rules, process, judgement->time_ns, live);
		name = site_name_of(process, live->site);
		before = find_kept(judge, &name);
		kept[count] = before ? *before : first_sight(&name, live->state);
		take_site(judge, &kept[count], live->state, counts);
		live->state = kept[count++].state;
		judgement->state_counts[live->state]++;
	}
	free(judge->kept);
	judge->kept = kept;
	judge->kept_count = count;
	if (counts)
		judge->counted_ns = judgement->time_ns;
	if (count)
		qsort(judge->sites, count, sizeof *judge->sites, by_state);
	judgement->sites = judge->sites;
	judgement->site_count = count;
}

const struct judgement *live_judge_pass(struct live_judge *judge, const struct judge_seen *seen)
{
	const struct facts *facts = seen->facts;
	struct judgement *judgement = &judge->judgement;
	size_t most = facts->device_count + LIVE_RESOURCES;

	forget_pass(judge);
	judgement->time_ns = seen->now_ns ? seen->now_ns : facts->moment.time_ns;
	judgement->needed_s = judge->rules.warm_up_s;
	if (facts->process_count) {
		uint64_t start_ns = facts->processes[facts->focus].start_ns;

		judgement->observed_s =
			(double)subtract_to_zero(judgement->time_ns, start_ns) / 1e9;
	}
	judgement->is_too_early = judgement->observed_s < judgement->needed_s;
	judge_sites(judge, seen);
	judge->resources = xalloc_zeroed(most, sizeof *judge->resources);
	judgement->resource_count = judge_resources(seen, judgement, judge->resources, most);
	judgement->resources = judge->resources;
	return judgement;
}
