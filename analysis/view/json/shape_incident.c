/* SPDX-License-Identifier: Apache-2.0 */
/* A request that failed, with the state of memory at that moment. */
#include "analysis/view/json/shapes.h"

#include "analysis/facts/kinds.h"

/* Each attempt has the free bytes of its own moment, which shows whether freeing a cache helped. */
#define OF struct fact_attempt
static const struct field attempt_fields[] = {
	{ "time_ns", NUMBER(time_ns) },
	{ "api", TEXT_OR_NULL(api) },
	{ "driver_api", TEXT_OR_NULL(driver_api) },
	{ "result", NUMBER(result) },
	{ "requested_bytes", NUMBER(requested_bytes) },
	{ "free_bytes", NUMBER(free_bytes) },
	{ "total_bytes", NUMBER(total_bytes) },
};
static const struct shape attempt_shape = SHAPE("attempt", attempt_fields);
#undef OF

#define OF struct fact_live_site
static const struct field live_site_fields[] = {
	{ "kind", NAME(kind, kind_words) },
	{ "bytes", COUNT(bytes) },
	{ "count", COUNT(count) },
	{ "stack", STACK(stack) },
};
static const struct shape live_site_shape = SHAPE(NULL, live_site_fields);
#undef OF

struct live_kind { uint64_t bytes, count; };
#define OF struct live_kind
static const struct field live_kind_fields[] = {
	{ "bytes", NUMBER(bytes) },
	{ "count", NUMBER(count) },
};
static const struct shape live_kind_shape = SHAPE(NULL, live_kind_fields);
#undef OF

/* As the recorder counted, so nothing depends on stacks. Kinds without a block have no key. */
static size_t write_live_kinds(struct fields *fields, const struct field *field,
			       const void *object)
{
	const struct fact_incident *incident = object;

	for (uint32_t kind = 1; kind < CUF_KIND_MAX; kind++) {
		struct live_kind live = { incident->live_bytes[kind], incident->live_count[kind] };
		if (live.count && live.count != CUF_UNKNOWN && kind_name(kind))
			fields_row(fields, kind_name(kind), field->shape, &live);
	}
	return 0;
}

#define OF struct fact_limit
static const struct field limit_fields[] = {
	{ "used_bytes", NUMBER(used_bytes) },
	{ "max_bytes", NUMBER(max_bytes), .meaning = "null: no limit" },
};
static const struct shape limit_shape = SHAPE("process_limit", limit_fields, .is_closed = true);
#undef OF

#define OF struct fact_incident
static const struct field limits_fields[] = {
	{ "address_space", OBJECT(limits[LIMIT_ADDRESS], limit_shape) },
	{ "private_data", OBJECT(limits[LIMIT_DATA], limit_shape) },
};
static const struct shape limits_shape = SHAPE(NULL, limits_fields, .is_closed = true,
	.meaning = "of the process: what it may map (RLIMIT_AS), and of private memory "
		   "(RLIMIT_DATA)");

static struct json_object *is_fatal(const struct fields *fields, const void *object)
{
	const struct fact_incident *incident = object;

	return json_object_new_boolean(incident->outcome == OUTCOME_FATAL);
}

/* A framework's own failure has no CUDA result. */
static const void *of_driver(const struct fields *fields, const void *object)
{
	const struct fact_incident *incident = object;

	return incident->kind == CUF_KIND_FRAMEWORK ? NULL : incident;
}

static struct json_object *refused_by(const struct fields *fields, const void *object)
{
	const struct fact_incident *incident = object;

	return json_text(fact_limit_words[incident->refused_by].key);
}

/* Without a phase, its source and basis are null too: their zero values are names. */
static const void *with_phase(const struct fields *fields, const void *object)
{
	const struct fact_incident *incident = object;

	return incident->phase ? incident : NULL;
}

const struct words outcome_words = WORDS(NULL, outcome_names);

static const struct field incident_fields[] = {
	{ "id", COUNT(id), LIMITS("minimum": 1) },
	{ "kind", NAME(kind, kind_words) },
	{ "outcome", NAME(outcome, outcome_words) },
	{ "outcome_why", TEXT_OR_NULL(outcome_why) },
	{ "fatal", VALUE(FLAG, is_fatal) }, /* repeats the outcome, for scripts */
	{ "time_ns", NUMBER(time_ns) },
	{ "pid", NUMBER(pid) },
	{ "tid", NUMBER(tid) },
	{ "device", DEVICE(device) },
	{ "api", TEXT_OR_NULL(api) },
	{ "driver_api", TEXT_OR_NULL(driver_api) },
	{ "result", .base = of_driver, NUMBER(result) },
	{ "is_request", FLAG(is_request) },
	{ "requested_bytes", NUMBER(requested_bytes) },
	{ "framework_requested_bytes", NUMBER(framework_requested_bytes),
	  .meaning = "what the framework's caller requested" },
	{ "least_requested_bytes", NUMBER(least_requested_bytes), .meaning = "of a request made of "
	  "chunks: those freed again, and the one that failed" },
	{ "framework_allocated_bytes", NUMBER(framework_allocated_bytes) },
	{ "framework_reserved_bytes", NUMBER(framework_reserved_bytes) },
	{ "free_bytes", NUMBER(free_bytes) },
	{ "total_bytes", NUMBER(total_bytes) },
	{ "attempts", LIST(attempts, attempt_count, attempt_shape), LIMITS("minItems": 1) },
	{ "largest_free", OBJECT(largest_free, layers_shape) },
	{ "fits_if_packed", ANSWER(fits_if_packed),
	  .meaning = "null: the recording does not have what the answer needs" },
	{ "packed_bytes", NUMBER(packed_bytes) },
	{ "cause", POINTER(cause, cause_shape) },
	{ "stack", STACK(stack) },
	{ "owners", LIST(owners, owner_count, owner_shape) },
	{ "live", .type = FIELD_MAP, .shape = &live_kind_shape, .rows = write_live_kinds },
	{ "sites", LIST(sites, site_count, live_site_shape) },
	{ "rss_bytes", NUMBER(rss_bytes) },
	{ "cgroup_bytes", NUMBER(cgroup_bytes) },
	{ "cgroup_max_bytes", NUMBER(cgroup_max_bytes) },
	{ "host_live_bytes", NUMBER(host_live_bytes) },
	{ "limits", PART(limits_shape) },
	{ "refused_by", VALUE_OR_NULL(TEXT, refused_by),
	  .meaning = "the lowest of these limits that left no room for the request",
	  LIMITS("enum": ["address_space", "private_data", null]) },
	{ "resolved_ns", NUMBER(resolved_ns) },
	{ "phase", TEXT_OR_NULL(phase),
	  .meaning = "innermost phase of its thread, else of the process" },
	{ "phase_source", .base = with_phase, .words = &phase_source_words,
	  FIELD(NAME, true, phase_source) },
	{ "phase_basis", .base = with_phase, BASIS(phase_basis) },
	{ "request", TEXT_OR_NULL(request_phase),
	  .meaning = "name of the request it was made for" },
	{ "request_id", NUMBER(request_id) },
	{ "basis", BASIS(basis) },
};
const struct shape incident_shape = SHAPE("incident", incident_fields);
#undef OF
