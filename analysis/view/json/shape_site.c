/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites with their growth, and whether the memory that is left will last. */
#include "analysis/view/json/shapes.h"

#include <math.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/kinds.h"

const struct words class_words = WORDS(NULL, class_names),
		   growth_words = WORDS(NULL, shape_names);

/* Both intervals are of 95 %. An end that is not finite is null. */
#define OF struct fact_site
static const struct field site_fields[] = {
	{ "kind", NAME(kind, kind_words) },
	{ "class", NAME(class, class_words) },
	{ "shape", NAME(shape, growth_words) },
	{ "bytes", NUMBER(bytes) },
	{ "count", NUMBER(count) },
	{ "basis", BASIS(basis) },
	{ "bytes_interval", INTERVAL(NUMBERS, false, low_bytes, high_bytes) },
	{ "slope_bytes_per_s", REAL(slope_bytes_per_s) },
	{ "interval", INTERVAL(REALS, true, interval[0], interval[1]) },
	{ "per_request_bytes", NUMBER(per_request_bytes) },
	{ "cycles", NUMBER(cycles), .meaning = "of the program's own work that were seen" },
	{ "cycles_basis", BASIS(cycles_basis), .meaning = "observed: requests that the program "
	  "marked; inferred: ups and downs of its memory" },
	{ "grown_bytes", REAL(grown_bytes) },
	{ "role", TEXT_OR_NULL(role), LATER, "what the blocks are for: weights, kv, activations; "
	  "null: unknown, or host memory" },
	{ "owner", TEXT_OR_NULL(owner), LATER, "what a runtime allocated this for by itself: Java "
	  "heap, Node.js buffers; null: the program's own" },
	{ "runtime", TEXT_OR_NULL(runtime), LATER, "of the owner: Java, Node.js, Go" },
	{ "holds_blocks", FLAG(holds_blocks), .meaning = "a framework's blocks lie in these: they "
	  "have rows of kind framework, the same bytes once more" },
	{ "peak_bytes", NUMBER(peak_bytes) },
	{ "alloc_count", NUMBER(alloc_count) },
	{ "alloc_bytes", NUMBER(alloc_bytes) },
	{ "free_count", NUMBER(free_count) },
	{ "first_ns", NUMBER(first_ns) },
	{ "last_ns", NUMBER(last_ns) },
	{ "pid", NUMBER(pid) },
	{ "device", DEVICE(device) },
	{ "api", TEXT_OR_NULL(api) },
	{ "stack", STACK(stack) },
};
const struct shape site_shape = SHAPE("site", site_fields);
#undef OF

static const struct words state_words = WORDS("live_state", live_state_names),
			  resource_words = WORDS(NULL, live_resource_names);
static const char *const outlooks[] = { "unknown", "too_early", "not_growing", "growing" };
static const struct words outlook_words = WORDS(NULL, outlooks);

/* Why a forecast is or is not there. */
static struct json_object *outlook(const struct fields *fields, const void *object)
{
	const struct live_resource *resource = object;
	double expected_s = resource->oom_s[LIVE_EXPECTED];

	if (isnan(resource->headroom_bytes))
		return json_text("unknown");
	if (isnan(expected_s))
		return json_text("too_early");
	return json_text(isinf(expected_s) ? "not_growing" : "growing");
}

#define OF struct live_resource
static const struct field left_fields[] = {
	{ "expected", REAL(oom_s[LIVE_EXPECTED]) },
	{ "soonest", REAL(oom_s[LIVE_SOONEST]) },
	{ "latest", REAL(oom_s[LIVE_LATEST]) },
};
static const struct shape left_shape = SHAPE(NULL, left_fields,
	.meaning = "null: not growing, or too early; a latest that is null may never come.");

static const struct field resource_fields[] = {
	{ "resource", NAME(kind, resource_words) },
	{ "device", DEVICE(device) },
	{ "limit_bytes", NUMBER(limit_bytes) },
	{ "free_bytes", NUMBER(free_bytes) },
	{ "burst_bytes", COUNT(burst_bytes) },
	{ "headroom_bytes", REAL(headroom_bytes), .meaning = "Free between bursts, less the "
	  "largest burst; negative: the largest work so far would fail now." },
	{ "outlook", .words = &outlook_words, VALUE(NAME, outlook) },
	{ "growth_bytes_per_s", REAL(bytes_per_s[LIVE_EXPECTED]),
	  .meaning = "Of the call sites that are proven to grow." },
	{ "interval", INTERVAL(REALS, true, bytes_per_s[LIVE_LOW], bytes_per_s[LIVE_HIGH]) },
	{ "seconds_to_oom", PART(left_shape) },
};
static const struct shape resource_shape = SHAPE("resource", resource_fields);
#undef OF

static const void *live_site_of(const struct fields *fields, const void *object)
{
	const struct live_site *live = object;

	return live->site;
}

#define OF struct live_site
static const struct field live_fields[] = {
	{ "state", NAME(state, state_words) },
	{ "rising_s", REAL(rising_s),
	  .meaning = "How long it has risen, at most; null: it does not." },
	{ "needed_s", REAL(needed_s), .meaning = "How long it must rise for a verdict." },
#undef OF
#define OF struct fact_site
	{ "bytes", .base = live_site_of, NUMBER(bytes) },
	{ "pid", .base = live_site_of, NUMBER(pid) },
	{ "device", .base = live_site_of, DEVICE(device) },
	{ "stack", .base = live_site_of, STACK(stack) },
#undef OF
#define OF struct live_site
};
static const struct shape live_shape = SHAPE(NULL, live_fields);
#undef OF

/* The gravest; all call sites are in "leaks". */
static size_t write_live_sites(struct fields *fields, const struct field *field, const void *object)
{
	enum { SITES_SHOWN = 20 };
	const struct judgement *judgement = object;

	for (size_t i = 0; i < least_of(judgement->site_count, SITES_SHOWN); i++)
		fields_row(fields, NULL, field->shape, &judgement->sites[i]);
	return judgement->site_count;
}

static struct json_object *states(const struct fields *fields, const void *object)
{
	const struct judgement *judgement = object;
	struct json_object *counts = json_object_new_object();

	for (unsigned state = 0; state < LIVE_STATES; state++)
		json_object_object_add(counts, live_state_names[state],
				       json_number(judgement->state_counts[state]));
	return counts;
}

#define OF struct judgement
static const struct field judgement_fields[] = {
	{ "too_early", FLAG(is_too_early) },
	{ "observed_s", REAL(observed_s) },
	{ "needed_s", REAL(needed_s) },
	{ "states", VALUE(ANY, states),
	  .meaning = "How many call sites that hold a MiB or more are in each state.",
	  LIMITS("type": "object", "propertyNames": {"$ref": "#/$defs/live_state"},
		 "additionalProperties": {"type": "integer", "minimum": 0}) },
	{ "resources", LIST(resources, resource_count, resource_shape) },
	{ "sites", ROWS(live_shape, write_live_sites),
	  .meaning = "At most 20: those in the gravest state first." },
};
const struct shape judgement_shape = SHAPE("judgement", judgement_fields,
	.meaning = "Of a run that still runs, at a moment that is no failure.");
#undef OF
