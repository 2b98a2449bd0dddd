/* SPDX-License-Identifier: Apache-2.0 */
/* Which changes of the work are worth trying for a trace. */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/what_if/work.h"

/* The trace with trial->argument, a share, of what other processes had of the device. */
static struct trace *without_others(const struct trace *trace, const struct trial *trial,
				    struct arena *arena, const char **why_not)
{
	struct trace *changed;

	if (!is_known(trace->others_bytes) || !is_known(trace->capacity_bytes)) {
		*why_not = "the recording does not show what other processes had";
		return NULL;
	}
	if (!trace->others_bytes) {
		*why_not = "no other process had memory of the device";
		return NULL;
	}
	changed = trace_copy(trace);
	changed->capacity_bytes +=
		(uint64_t)((double)trace->others_bytes * (1 - trial->argument));
	return changed;
}

enum { EFFORT_FIX = 50, EFFORT_LESS = 60 };

/* On the allocator as it was set. */
static void propose(struct trials *trials, const struct trace *trace, const char *id,
		    const char *typed, unsigned effort, bool is_extra,
		    struct trace *(*change)(const struct trace *, const struct trial *,
					    struct arena *, const char **),
		    double argument)
{
	trials_add(trials, (struct trial){ .kind = TRIAL_WORK,
					   .id = id,
					   .typed = typed,
					   .effort = effort,
					   .is_extra = is_extra,
					   .values = trace->kind_count[CUF_KIND_FRAMEWORK] ?
							     trace->settings : "",
					   .change = change,
					   .argument = argument });
}

static void add_trial_site(struct trials *trials, const struct trace *trace)
{
	struct gaining_site site = gaining_site_of(trace);

	if (!site.stack || !trials_is_notable(trace, site.bytes))
		return;
	propose(trials, trace, "without-growth",
		arena_format(trials->arena, "without what the fastest growing call site keeps (%s "
					    "blocks, %s)",
			     units_count(site.blocks).s, units_bytes(site.bytes).s),
		EFFORT_FIX, false, bound_site, 1);
	propose(trials, trace, "half-the-growth",
		arena_format(trials->arena, "with at most %s of these blocks at once",
			     units_count(site.blocks / 2).s),
		EFFORT_FIX, true, bound_site, (double)(site.blocks / 2));
}

/* Bytes that were missing at the request that failed, for blocks without gaps; 0: none, unknown. */
static uint64_t missing_bytes(const struct trace *trace)
{
	const struct trace_step *refused = trace_refused(trace);
	uint64_t *bytes = xalloc_zeroed(trace->block_count + 1, sizeof *bytes), live = 0;

	for (const struct trace_step *step = trace->steps; refused && step < refused; step++) {
		if (step->op == TRACE_ALLOC)
			live += bytes[step->block] = step->bytes;
		else if (step->op == TRACE_FREE)
			live -= bytes[step->block];
	}
	free(bytes);
	return refused && is_known(trace->capacity_bytes) ?
		       subtract_to_zero(live + refused->bytes, trace->capacity_bytes) : 0;
}

/* The largest share of what was loaded that would fit. */
static void add_loaded_share(struct trials *trials, const struct trace *trace, uint64_t loaded)
{
	uint64_t missing = missing_bytes(trace);

	if (!missing || missing >= loaded)
		return;
	propose(trials, trace, "loaded-fits",
		arena_format(trials->arena, "of what was loaded at the start (now %s)",
			     units_bytes(loaded).s),
		EFFORT_LESS, false, scale_loaded, (double)(loaded - missing) / (double)loaded);
	trials->rows[trials->count - 1].searched = "weights";
}

static void add_sizes(struct trials *trials, const struct trace *trace)
{
	uint64_t loaded = loaded_bytes_of(trace), largest = largest_request_of(trace);

	if (trials_is_notable(trace, loaded)) {
		add_loaded_share(trials, trace, loaded);
		propose(trials, trace, "loaded-quarter-less",
			arena_format(trials->arena, "25%% less loaded at the start (now %s)",
				     units_bytes(loaded).s),
			EFFORT_LESS, true, scale_loaded, 0.75);
		propose(trials, trace, "loaded-half",
			arena_format(trials->arena, "half as much loaded at the start (now %s)",
				     units_bytes(loaded).s),
			EFFORT_LESS, true, scale_loaded, 0.5);
	}
	if (trials_is_notable(trace, largest))
		propose(trials, trace, "largest-half",
			arena_format(trials->arena, "the largest request half as large (now %s)",
				     units_bytes(largest).s),
			EFFORT_LESS, true, scale_largest, 0.5);
}

static void add_threads(struct trials *trials, const struct trace *trace)
{
	size_t busy = trace_refused(trace) ? threads_at_once(trace) : 0;

	if (busy < 2)
		return;
	propose(trials, trace, "one-at-once",
		arena_format(trials->arena, "one request at once (now %s threads)",
			     units_count(busy).s),
		EFFORT_LESS, false, limit_threads, 1);
	if (busy >= 4)
		propose(trials, trace, "half-at-once",
			arena_format(trials->arena, "at most %s requests at once (now %s threads)",
				     units_count(busy / 2).s, units_count(busy).s),
			EFFORT_LESS, true, limit_threads, (double)(busy / 2));
}

static void add_cache(struct trials *trials, const struct trace *trace)
{
	struct gaining_site site = cache_site_of(trace);

	if (!site.stack || !trials_is_notable(trace, site.bytes))
		return;
	propose(trials, trace, "cache-half",
		arena_format(trials->arena, "the largest cache with at most %s (now %s blocks, %s)",
			     units_bytes(site.bytes / 2).s, units_count(site.blocks).s,
			     units_bytes(site.bytes).s),
		EFFORT_LESS, true, bound_cache, (double)(site.bytes / 2));
}

/* Contexts and batches half as long. */
static void add_lengths(struct trials *trials, const struct trace *trace)
{
	uint64_t steps = context_steps_of(trace), unit, batch = batch_of(trace, &unit);

	if (steps >= 2)
		propose(trials, trace, "context-half",
			arena_format(trials->arena, "contexts of at most %s steps (the longest had "
				     "%s)",
				     units_count(steps / 2).s, units_count(steps).s),
			EFFORT_LESS, false, cap_context, (double)(steps / 2));
	if (batch >= 2)
		propose(trials, trace, "batch-half",
			arena_format(trials->arena, "batch=%s: requests of at most %s (the largest "
				     "had %s, %s times %s)",
				     units_count(batch / 2).s, units_bytes(batch / 2 * unit).s,
				     units_bytes(batch * unit).s, units_count(batch).s,
				     units_bytes(unit).s),
			EFFORT_LESS, false, cap_batch, (double)(batch / 2));
}

static void add_others(struct trials *trials, const struct trace *trace)
{
	if (!is_known(trace->others_bytes) || !trials_is_notable(trace, trace->others_bytes))
		return;
	propose(trials, trace, "no-tenant",
		arena_format(trials->arena, "without other processes on the device (at least %s)",
			     units_bytes(trace->others_bytes).s),
		EFFORT_FIX, false, without_others, 0);
}

/* ---- what a user types ---- */

enum value_type { VALUE_SHARE, VALUE_COUNT, VALUE_BYTES };

static const struct change {
	const char *name;
	enum value_type type; /* a share is in percent of what was recorded */
	struct trace *(*apply)(const struct trace *, const struct trial *, struct arena *,
			       const char **);
} changes[] = {
	{ "weights", VALUE_SHARE, scale_loaded },
	{ "kv", VALUE_SHARE, scale_kv },
	{ "largest", VALUE_SHARE, scale_largest },
	{ "tenant", VALUE_SHARE, without_others },
	{ "requests", VALUE_COUNT, limit_threads },
	{ "kept", VALUE_COUNT, bound_site },
	{ "context", VALUE_COUNT, cap_context },
	{ "batch", VALUE_COUNT, cap_batch },
	{ "cache", VALUE_BYTES, bound_cache },
};

static const struct change *change_named(const char *typed)
{
	size_t bytes = strcspn(typed, "=");

	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		if (strlen(changes[i].name) == bytes && !strncmp(changes[i].name, typed, bytes))
			return &changes[i];
	return NULL;
}

/* True: *argument is filled. False: *why is a clause. */
static bool parse_value(const struct change *change, const char *text, double *argument,
			const char **why)
{
	uint64_t bytes;
	double value;
	char *end;

	if (change->type == VALUE_BYTES) {
		if (units_parse_bytes(text, &bytes) && bytes) {
			*argument = (double)bytes;
			return true;
		}
		*why = "its value is a size, as 512MiB";
		return false;
	}
	value = strtod(text, &end);
	if (change->type == VALUE_SHARE) {
		/* a share of 0 makes sense only for what may be gone */
		bool may_be_none = change->apply == without_others;

		*argument = value / 100;
		if (end != text && !strcmp(end, "%") && value <= 1000 &&
		    (value > 0 || (may_be_none && value == 0)))
			return true;
		*why = "its value is a share of what was recorded, from 1% to 1000%";
		return false;
	}
	*argument = value;
	if (end != text && !*end && value >= 1 && value <= 1e6 && value == (double)(size_t)value)
		return true;
	*why = "its value is a whole number from 1 to 1000000";
	return false;
}

bool work_trial_parse(struct trial *trial, const struct trace *trace, const char *typed,
		      const char **why)
{
	const struct change *change = change_named(typed);

	if (!change ||
	    !parse_value(change, typed + strlen(change->name) + 1, &trial->argument, why))
		return false;
	trial->kind = TRIAL_WORK;
	trial->change = change->apply;
	trial->values = trace->kind_count[CUF_KIND_FRAMEWORK] ? trace->settings : "";
	return true;
}

void work_trials(struct trials *trials, const struct trace *trace)
{
	add_trial_site(trials, trace);
	add_sizes(trials, trace);
	add_threads(trials, trace);
	add_cache(trials, trace);
	add_lengths(trials, trace);
	add_others(trials, trace);
}
