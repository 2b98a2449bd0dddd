/* SPDX-License-Identifier: Apache-2.0 */
/* Passes of a judge: the state of one call site, as one pass sees it, by the rules of README.md;
 * how much is left of each resource, and for how long; what it remembers, and when that changes a
 * state. */
#include "analysis/explain/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

/* ---- one call site, as one pass sees it ---- */

enum {
	CYCLES_NEEDED = 40,   /* where nothing but turns of the work proves it */
	CYCLES_OF_AGES = 24,
	UPTIME_PART = 4,      /* it rises for this part of the time, */
	UPTIME_WARM_UPS = 12, /* up to so many warm-ups: an hour */
	TWICE = 2             /* as long, where a rise that ends is likely */
};
#define PACE_KEPT 0.75

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return (double)subtract_to_zero(to_ns, from_ns) / 1e9;
}

/* A cache of keys and values is filled once, as weights are. The ages of blocks rise, too, until a
 * program has replaced its state once. */
static bool may_end(const struct fact_site *site)
{
	return site->class == CLASS_GROWING ||
	       (site->role && (!strcmp(site->role, "kv") || !strcmp(site->role, "weights")));
}

/* Its minimum rises, whether or not that is proven to go on. */
static bool rises(const struct fact_site *site)
{
	if (site->class <= CLASS_GROWING)
		return true;
	return site->class == CLASS_RETAINED && site->shape != SHAPE_PLATEAU &&
	       site->slope_bytes_per_s > 0 && site->interval[0] > 0;
}

/* Not long enough, or not over enough turns of the work. */
static bool is_young(const struct live_site *live)
{
	unsigned cycles = live->site->class == CLASS_GROWING ? CYCLES_OF_AGES : CYCLES_NEEDED;

	return live->rising_s < live->needed_s ||
	       (live->site->cycles && live->site->own_cycles < cycles);
}

static enum live_state state_now(const struct judge_rules *rules,
				 const struct fact_process *process, uint64_t now_ns,
				 struct live_site *live)
{
	const struct fact_site *site = live->site;
	double uptime_s = seconds_between(process->start_ns, now_ns);

	live->rising_s = NAN;
	live->needed_s = fmax(rules->warm_up_s, fmin(uptime_s / UPTIME_PART,
						     UPTIME_WARM_UPS * rules->warm_up_s));
	if (may_end(site))
		live->needed_s *= TWICE;
	if (!rises(site))
		return LIVE_STEADY;
	live->rising_s = uptime_s;
	if (is_known(site->first_ns))
		live->rising_s = fmin(uptime_s, seconds_between(site->first_ns, now_ns));
	if (is_young(live))
		return LIVE_WARMING;
	if (!(site->pace >= PACE_KEPT) || site->class > CLASS_GROWING)
		return LIVE_FILLING;
	return site->class == CLASS_LEAK ? LIVE_LEAK : LIVE_GROWING;
}

/* ---- what grows of a resource ---- */

static bool uses(const struct live_site *live, const struct live_resource *resource)
{
	if (resource->kind != LIVE_GPU)
		return live->site->kind == CUF_KIND_HOST;
	return live->site->device == resource->device;
}

static bool is_slope(const struct fact_site *site)
{
	return site->slope_bytes_per_s > 0 && isfinite(site->slope_bytes_per_s) &&
	       isfinite(site->interval[0]) && isfinite(site->interval[1]);
}

/* Slopes of what is proven add up, and so do their bounds. False: what rises is not judged yet. */
static bool add_slopes(const struct judgement *judgement, struct live_resource *resource)
{
	bool is_judged = !judgement->is_too_early;

	for (size_t i = 0; i < judgement->site_count; i++) {
		const struct live_site *live = &judgement->sites[i];

		if (!uses(live, resource))
			continue;
		if (live->state == LIVE_WARMING)
			is_judged = false;
		if (live->state < LIVE_GROWING || !is_slope(live->site))
			continue;
		resource->bytes_per_s[LIVE_EXPECTED] += live->site->slope_bytes_per_s;
		resource->bytes_per_s[LIVE_LOW] += live->site->interval[0];
		resource->bytes_per_s[LIVE_HIGH] += live->site->interval[1];
	}
	return is_judged || resource->bytes_per_s[LIVE_EXPECTED] > 0;
}

static void forecast(const struct judgement *judgement, struct live_resource *resource)
{
	bool is_judged = add_slopes(judgement, resource);
	const double *pace = resource->bytes_per_s;

	for (unsigned i = 0; i < sizeof resource->oom_s / sizeof *resource->oom_s; i++)
		resource->oom_s[i] = NAN;
	if (!is_judged || isnan(resource->headroom_bytes))
		return;
	resource->oom_s[LIVE_EXPECTED] =
		live_seconds_left(resource->headroom_bytes, pace[LIVE_EXPECTED]);
	resource->oom_s[LIVE_SOONEST] =
		live_seconds_left(resource->headroom_bytes, pace[LIVE_HIGH]);
	resource->oom_s[LIVE_LATEST] =
		live_seconds_left(resource->headroom_bytes, pace[LIVE_LOW]);
}

/* ---- what is left of it ---- */

static const struct fact_recent *recent_of(const struct fact_process *process, uint32_t device)
{
	for (size_t i = 0; i < process->recent_count; i++)
		if (process->recent[i].device == device)
			return &process->recent[i];
	return NULL;
}

/* a - b of figures that may be unknown: then nothing. */
static double excess(uint64_t a, uint64_t b)
{
	if (!is_known(a) || !is_known(b))
		return 0;
	return (double)subtract_to_zero(a, b);
}

/*
 * Free at the low level between bursts. What a framework has reserved and not needed for an hour,
 * it can release. The largest burst of one process counts: those of several seldom coincide.
 */
static struct live_resource gpu_of(const struct facts *facts, uint32_t device)
{
	struct live_resource out = { .kind = LIVE_GPU, .device = device,
				     .limit_bytes = facts->devices[device].total_bytes,
				     .free_bytes = facts->devices[device].free_bytes,
				     .headroom_bytes = NAN };

	if (!is_known(out.free_bytes))
		return out;
	out.headroom_bytes = (double)out.free_bytes;
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_recent *recent = recent_of(&facts->processes[i], device);

		if (!recent || !end_may_run(facts->processes[i].end))
			continue;
		out.burst_bytes = most_of(out.burst_bytes, recent->burst_bytes);
		/* a part of a burst may be there now; a model that was loaded is none */
		out.headroom_bytes += fmin(excess(recent->live_bytes, recent->minute.low_bytes),
					   (double)recent->burst_bytes) +
				      excess(recent->minute.outer_peak_bytes,
					     recent->hour.inner_peak_bytes);
	}
	out.headroom_bytes -= (double)out.burst_bytes;
	return out;
}

/* What was resident within the hour and is not now. */
static uint64_t host_burst(const struct facts *facts)
{
	uint64_t burst = 0;

	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *process = &facts->processes[i];
		const struct fact_recent *recent = recent_of(process, FACT_NONE);

		if (recent && end_may_run(process->end))
			burst = most_of(burst, (uint64_t)excess(recent->hour.inner_peak_bytes,
								process->host.rss_bytes));
	}
	return burst;
}

static struct live_resource host_of(const struct judge_seen *seen, enum live_resource_kind kind)
{
	const struct fact_host *host = &seen->facts->processes[seen->facts->focus].host;
	struct live_resource out = { .kind = kind, .device = FACT_NONE,
				     .limit_bytes = host->memory_total_bytes,
				     .free_bytes = seen->machine_available_bytes,
				     .burst_bytes = host_burst(seen->facts),
				     .headroom_bytes = NAN };
	uint64_t used = seen->cgroup_working_bytes;

	if (kind == LIVE_CGROUP) {
		out.limit_bytes = host->cgroup_max_bytes;
		if (!is_known(used))
			used = host->cgroup_bytes;
		out.free_bytes = is_known(used) && is_known(out.limit_bytes)
					 ? subtract_to_zero(out.limit_bytes, used)
					 : CUF_UNKNOWN;
	}
	if (is_known(out.free_bytes))
		out.headroom_bytes = (double)out.free_bytes - (double)out.burst_bytes;
	return out;
}

static size_t fill_resources(const struct judge_seen *seen, const struct judgement *judgement,
			     struct live_resource *out, size_t most)
{
	const struct facts *facts = seen->facts;
	size_t count = 0;

	for (uint32_t d = 0; d < facts->device_count && count < most; d++)
		out[count++] = gpu_of(facts, d);
	if (facts->process_count)
		for (enum live_resource_kind kind = LIVE_CGROUP;
		     kind < LIVE_RESOURCES && count < most; kind++)
			out[count++] = host_of(seen, kind);
	for (size_t i = 0; i < count; i++)
		forecast(judgement, &out[i]);
	return count;
}

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
		live->state = state_now(&judge->rules, process, judgement->time_ns, live);
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
	judgement->resource_count = fill_resources(seen, judgement, judge->resources, most);
	judgement->resources = judge->resources;
	return judgement;
}
