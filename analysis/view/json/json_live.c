/* SPDX-License-Identifier: Apache-2.0 */
/* How high memory was lately, and whether what is left will last. */
#include "analysis/view/json/json_parts.h"

#include <math.h>
#include "analysis/base/numbers.h"

static struct json_object *json_extremes(const struct fact_extremes *extremes, bool host)
{
	struct json_object *object = json_object_new_object();

	json_add_number(object, "peak_bytes", extremes->peak_bytes);
	json_add_number(object, "low_bytes", extremes->low_bytes);
	json_add_number(object, "lowest_free_bytes", extremes->free_bytes);
	json_add_number(object, host ? "rss_peak_bytes" : "framework_peak_bytes",
			extremes->inner_peak_bytes);
	json_add_number(object, host ? "cgroup_peak_bytes" : "reserved_peak_bytes",
			extremes->outer_peak_bytes);
	return object;
}

struct json_object *json_recent(const struct facts *facts, const struct fact_process *process)
{
	struct json_object *rows = json_object_new_array();

	for (size_t i = 0; i < process->recent_count; i++) {
		const struct fact_recent *recent = &process->recent[i];
		struct json_object *row = json_object_new_object();
		bool host = recent->device == FACT_NONE;

		json_add(row, "device", json_device_ordinal(facts, recent->device));
		json_add_number(row, "live_bytes", recent->live_bytes);
		json_add_number(row, "burst_bytes", recent->burst_bytes);
		json_add(row, "minute", json_extremes(&recent->minute, host));
		json_add(row, "hour", json_extremes(&recent->hour, host));
		json_object_array_add(rows, row);
	}
	return rows;
}

/* Why a forecast is or is not there. */
static const char *outlook_of(const struct live_resource *resource)
{
	double expected_s = resource->oom_s[LIVE_EXPECTED];

	if (isnan(resource->headroom_bytes))
		return "unknown";
	if (isnan(expected_s))
		return "too_early";
	return isinf(expected_s) ? "not_growing" : "growing";
}

static struct json_object *json_resource(const struct facts *facts,
					 const struct live_resource *resource)
{
	struct json_object *object = json_object_new_object(), *left = json_object_new_object(),
			   *interval = json_object_new_array();

	json_add_text(object, "resource", live_resource_names[resource->kind]);
	json_add(object, "device", json_device_ordinal(facts, resource->device));
	json_add_number(object, "limit_bytes", resource->limit_bytes);
	json_add_number(object, "free_bytes", resource->free_bytes);
	json_add_number(object, "burst_bytes", resource->burst_bytes);
	json_add_double(object, "headroom_bytes", resource->headroom_bytes);
	json_add_text(object, "outlook", outlook_of(resource));
	json_add_double(object, "growth_bytes_per_s", resource->bytes_per_s[LIVE_EXPECTED]);
	json_object_array_add(interval, json_double(resource->bytes_per_s[LIVE_LOW]));
	json_object_array_add(interval, json_double(resource->bytes_per_s[LIVE_HIGH]));
	json_add(object, "interval", interval);
	json_add_double(left, "expected", resource->oom_s[LIVE_EXPECTED]);
	json_add_double(left, "soonest", resource->oom_s[LIVE_SOONEST]);
	json_add_double(left, "latest", resource->oom_s[LIVE_LATEST]);
	json_add(object, "seconds_to_oom", left);
	return object;
}

static struct json_object *json_live_site(const struct facts *facts, struct frames *frames,
					  const struct live_site *live)
{
	struct json_object *object = json_object_new_object();

	json_add_text(object, "state", live_state_names[live->state]);
	json_add_double(object, "rising_s", live->rising_s);
	json_add_double(object, "needed_s", live->needed_s);
	json_add_number(object, "bytes", live->site->bytes);
	json_add_number(object, "pid", live->site->pid);
	json_add(object, "device", json_device_ordinal(facts, live->site->device));
	json_add(object, "stack", json_stack(frames, &live->site->stack));
	return object;
}

struct json_object *json_judgement(const struct facts *facts, struct frames *frames)
{
	enum { SITES_SHOWN = 20 }; /* the gravest; all call sites are in "leaks" */
	const struct judgement *judgement = facts->judgement;
	struct json_object *object, *states, *resources, *sites;

	if (!judgement)
		return NULL;
	object = json_object_new_object();
	states = json_object_new_object();
	resources = json_object_new_array();
	sites = json_object_new_array();
	json_add_bool(object, "too_early", judgement->is_too_early);
	json_add_double(object, "observed_s", judgement->observed_s);
	json_add_double(object, "needed_s", judgement->needed_s);
	for (unsigned state = 0; state < LIVE_STATES; state++)
		json_add_number(states, live_state_names[state], judgement->state_counts[state]);
	json_add(object, "states", states);
	for (size_t i = 0; i < judgement->resource_count; i++)
		json_object_array_add(resources, json_resource(facts, &judgement->resources[i]));
	json_add(object, "resources", resources);
	for (size_t i = 0; i < least_of(judgement->site_count, SITES_SHOWN); i++)
		json_object_array_add(sites,
				      json_live_site(facts, frames, &judgement->sites[i]));
	json_add(object, "sites", sites);
	return object;
}
