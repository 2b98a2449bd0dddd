/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one call site, as one pass sees it; README.md has the rules with their reasons. */
#include "analysis/explain/live/judge_parts.h"

#include <math.h>
#include <string.h>
#include "analysis/base/numbers.h"

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

enum live_state judge_site(const struct judge_rules *rules, const struct fact_process *process,
			   uint64_t now_ns, struct live_site *live)
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
