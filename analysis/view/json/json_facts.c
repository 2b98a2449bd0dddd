/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts to JSON values: stacks, owners, devices, fragmentation, incidents, sites. One
 * function a structure, in its order.
 */
#include "analysis/view/json/json_parts.h"

#include <string.h>
#include "analysis/device/uuid.h"
#include "analysis/view/kinds.h"

/*
 * Rows whose "in_sum" is true add up to the total of the device. Managed memory is listed too,
 * but it moves between host and device and is not part of that sum.
 */
struct json_object *json_owners(const struct fact_owner_row *owners, size_t count)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < count; i++) {
		struct json_object *row = json_object_new_object();
		const char *source = NULL;
		json_add_text(row, "kind", owner_names[owners[i].kind]);
		json_add_text(row, "role", owners[i].role);
		json_add(row, "role_basis", json_basis(owners[i].role_basis));
		json_add_number(row, "bytes", owners[i].bytes);
		json_add_number(row, "count", owners[i].count);
		json_add_basis(row, owners[i].basis);
		json_add_positive(row, "pid", owners[i].pid);
		json_add_text(row, "name", owners[i].name);
		if (owners[i].by_nvml)
			source = "nvml";
		json_add_text(row, "source", source);
		json_add_bool(row, "in_sum", owners[i].in_sum);
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * One key a layer, because a request can use only the free ranges of the layer that serves it.
 * "basis" states for each figure whether it is exact, measured or a bound.
 */
struct json_object *json_largest_free(const struct fact_layer *layers)
{
	struct json_object *object = json_object_new_object(), *basis = json_object_new_object();
	for (size_t i = 0; i < LAYER_MAX; i++) {
		json_add_number(object, layer_names[i], layers[i].bytes);
		json_add_text(basis, layer_names[i], json_layer_words(&layers[i]));
	}
	json_add(object, "basis", basis);
	return object;
}

/* The time that the owners are about: a failure, the end, or the time requested by --at. */
static struct json_object *json_moment(const struct facts *facts, const struct fact_moment *moment)
{
	struct json_object *object = json_object_new_object();
	json_add_text(object, "kind", moment_names[moment->kind]);
	json_add_number(object, "time_ns", moment->time_ns);
	json_add(object, "pid", json_pid(facts, moment->process));
	json_add_positive(object, "incident", moment->incident);
	json_add_basis(object, moment->basis);
	return object;
}

/*
 * Free ranges by size. Classes double from 1 KiB; the first begins at 0 and the last has no
 * upper end.
 */
static struct json_object *json_holes(const struct fact_fragmentation *fragmentation)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < FACT_HOLE_CLASSES; i++) {
		struct json_object *row = json_object_new_object();
		uint64_t from = 512ull << i, below = 1024ull << i;
		if (i == 0)
			from = 0;
		if (i + 1 == FACT_HOLE_CLASSES)
			below = CUF_UNKNOWN;
		json_add_number(row, "from_bytes", from);
		json_add_number(row, "below_bytes", below);
		json_add_number(row, "count", fragmentation->hole_count[i]);
		json_add_number(row, "bytes", fragmentation->hole_bytes[i]);
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * The 2 MiB pages that small blocks share, and the call sites whose blocks keep partly used
 * pages alive.
 */
static void stream_pages(struct json_stream *stream, struct frames *frames,
			 const struct fact_fragmentation *fragmentation)
{
	struct json_object *object = json_object_new_object();
	json_add_number(object, "count", fragmentation->pages);
	json_add_number(object, "partial_count", fragmentation->pages_partial);
	json_add_number(object, "sparse_count", fragmentation->pages_sparse);
	json_add_number(object, "free_bytes", fragmentation->page_free_bytes);
	json_add_number(object, "largest_hole_bytes", fragmentation->page_largest_hole_bytes);
	json_add(object, "holes", json_holes(fragmentation));
	json_stream_object(stream, "pages");
	json_stream_members(stream, object);
	json_stream_array(stream, "pins");
	for (size_t i = 0; json_stream_wants(stream, i, fragmentation->pin_count); i++) {
		struct json_object *pin = json_object_new_object();
		json_add_number(pin, "pages", fragmentation->pins[i].pages);
		json_add_number(pin, "open_bytes", fragmentation->pins[i].open_bytes);
		json_add_number(pin, "bytes", fragmentation->pins[i].bytes);
		json_add_number(pin, "count", fragmentation->pins[i].count);
		json_add(pin, "stack", json_stack(frames, &fragmentation->pins[i].stack));
		json_stream_value(stream, NULL, pin);
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "pins_left_out", fragmentation->pin_count);
	json_stream_close(stream);
}

/* CUDA memory pools. The driver keeps graphs in a pool of its own, which has the handle 0. */
static void stream_pools(struct json_stream *stream, const struct facts *facts,
			 const struct fact_fragmentation *fragmentation)
{
	json_stream_array(stream, "pools");
	for (size_t i = 0; json_stream_wants(stream, i, fragmentation->pool_count); i++) {
		const struct fact_pool *pool = &fragmentation->pools[i];
		struct json_object *row = json_object_new_object();
		json_add(row, "pid", json_pid(facts, pool->process));
		json_add_hex(row, "pool", pool->pool);
		json_add_bool(row, "graph", pool->pool == 0);
		json_add_number(row, "reserved_bytes", pool->reserved_bytes);
		json_add_number(row, "used_bytes", pool->used_bytes);
		json_add_number(row, "threshold_bytes", pool->threshold_bytes);
		json_add_number(row, "live_bytes", pool->live_bytes);
		json_add_number(row, "live_count", pool->live_count);
		json_add_number(row, "largest_gap_bytes", pool->largest_gap_bytes);
		json_add_basis(row, pool->basis);
		json_stream_value(stream, NULL, row);
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "pools_left_out", fragmentation->pool_count);
}

/* Address ranges of cuMemAddressReserve, and how much of each is backed by memory. */
static void stream_reservations(struct json_stream *stream, const struct facts *facts,
				struct frames *frames,
				const struct fact_fragmentation *fragmentation)
{
	json_stream_array(stream, "vmm");
	for (size_t i = 0; json_stream_wants(stream, i, fragmentation->vmm_count); i++) {
		const struct fact_vmm *vmm = &fragmentation->vmm[i];
		struct json_object *row = json_object_new_object();
		json_add(row, "pid", json_pid(facts, vmm->process));
		json_add_hex(row, "address", vmm->addr);
		json_add_number(row, "bytes", vmm->bytes);
		json_add_number(row, "mapped_bytes", vmm->mapped_bytes);
		json_add_number(row, "map_count", vmm->map_count);
		json_add_number(row, "largest_unmapped_bytes", vmm->largest_unmapped_bytes);
		json_add(row, "stack", json_stack(frames, &vmm->stack));
		json_stream_value(stream, NULL, row);
	}
	json_stream_close(stream);
	json_stream_left_out(stream, "vmm_left_out", fragmentation->vmm_count);
}

void stream_fragmentation(struct json_stream *stream, const struct facts *facts,
			  struct frames *frames, const struct fact_device *device)
{
	const struct fact_fragmentation *fragmentation = &device->fragmentation;
	json_stream_object(stream, "fragmentation");
	json_stream_value(stream, "device", json_number(device->ordinal));
	json_stream_value(stream, "basis", json_basis(fragmentation->basis));
	stream_pages(stream, frames, fragmentation);
	stream_pools(stream, facts, fragmentation);
	stream_reservations(stream, facts, frames, fragmentation);
	json_stream_value(stream, "vmm_held_bytes", json_number(fragmentation->vmm_held_bytes));
	json_stream_value(stream, "vmm_mapped_bytes", json_number(fragmentation->vmm_mapped_bytes));
	json_stream_value(stream, "vmm_unmapped_bytes",
			  json_number(fragmentation->vmm_unmapped_bytes));
	stream_frameworks(stream, facts, frames, fragmentation);
	stream_segments(stream, facts, frames, fragmentation);
	json_stream_close(stream);
}

/* null: the driver was not asked. */
static struct json_object *json_uuid(const uint8_t uuid[16])
{
	char text[UUID_TEXT];

	return uuid_text(uuid, text) ? json_object_new_string(text) : NULL;
}

/*
 * A device in full. Bytes of the driver ("total_bytes", "free_bytes") are of the whole device
 * and include other processes.
 */
void stream_device(struct json_stream *stream, const struct facts *facts, struct frames *frames,
		   const struct fact_device *device)
{
	struct json_object *object = json_object_new_object();
	json_add_number(object, "id", device->ordinal);
	json_add(object, "uuid", json_uuid(device->uuid));
	json_add_text(object, "name", device->name);
	json_add_word(object, "pci", device->pci);
	json_add_number(object, "total_bytes", device->total_bytes);
	json_add_number(object, "free_bytes", device->free_bytes);
	json_add_number(object, "free_ns", device->free_ns);
	json_add_number(object, "peak_bytes", device->peak_bytes);
	json_add_number(object, "peak_ns", device->peak_ns);
	json_add_word(object, "peak_basis", basis_names[device->peak_basis]);
	json_add_number(object, "granularity_bytes", device->granularity_bytes);
	json_add_number(object, "alloc_count", device->alloc_count);
	json_add_number(object, "free_count", device->free_count);
	json_add_number(object, "fail_count", device->fail_count);
	json_add(object, "moment", json_moment(facts, &device->moment));
	json_add(object, "owners", json_owners(device->owners, device->owner_count));
	json_add(object, "largest_free", json_largest_free(device->largest_free));
	json_stream_object(stream, NULL);
	json_stream_members(stream, object);
	stream_fragmentation(stream, facts, frames, device);
	json_stream_close(stream);
}

/*
 * A framework retries after freeing its cache. Each attempt has the free bytes of its own
 * moment, which shows whether that helped.
 */
static struct json_object *json_attempts(const struct fact_incident *incident)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < incident->attempt_count; i++) {
		const struct fact_attempt *attempt = &incident->attempts[i];
		struct json_object *row = json_object_new_object();
		json_add_number(row, "time_ns", attempt->time_ns);
		json_add_text(row, "api", attempt->api);
		json_add_text(row, "driver_api", attempt->driver_api);
		json_add_number(row, "result", attempt->result);
		json_add_number(row, "requested_bytes", attempt->requested_bytes);
		json_add_number(row, "free_bytes", attempt->free_bytes);
		json_add_number(row, "total_bytes", attempt->total_bytes);
		json_object_array_add(array, row);
	}
	return array;
}

/* What was allocated when the request failed, by call site and kind. */
static struct json_object *json_live_sites(struct frames *frames,
					   const struct fact_incident *incident)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < incident->site_count; i++) {
		const struct fact_live_site *site = &incident->sites[i];
		struct json_object *row = json_object_new_object();
		json_add_text(row, "kind", kind_name(site->kind));
		json_add_number(row, "bytes", site->bytes);
		json_add_number(row, "count", site->count);
		json_add(row, "stack", json_stack(frames, &site->stack));
		json_object_array_add(array, row);
	}
	return array;
}

/*
 * The same by kind only, as the recorder counted, so that nothing depends on stacks. Kinds
 * without a block have no key.
 */
static struct json_object *json_live_kinds(const struct fact_incident *incident)
{
	struct json_object *object = json_object_new_object();
	for (uint32_t kind = 1; kind < CUF_KIND_MAX; kind++) {
		struct json_object *row;
		if (!incident->live_count[kind] || incident->live_count[kind] == CUF_UNKNOWN ||
		    !kind_name(kind))
			continue;
		row = json_object_new_object();
		json_add_number(row, "bytes", incident->live_bytes[kind]);
		json_add_number(row, "count", incident->live_count[kind]);
		json_add(object, kind_name(kind), row);
	}
	return object;
}

/* A framework's own failure has no CUDA result. */
static uint64_t result_of(const struct fact_incident *incident)
{
	if (incident->kind == CUF_KIND_FRAMEWORK)
		return CUF_UNKNOWN;
	return incident->result;
}

/* Without a phase, its source and basis are null too: their zero values are names. */
static void add_limits(struct json_object *object, const struct fact_incident *incident)
{
	struct json_object *limits = json_object_new_object();

	for (enum fact_limit_kind kind = LIMIT_ADDRESS; kind < LIMIT_MAX; kind++) {
		struct json_object *limit = json_object_new_object();
		json_add_number(limit, "used_bytes", incident->limits[kind].used_bytes);
		json_add_number(limit, "max_bytes", incident->limits[kind].max_bytes);
		json_add(limits, fact_limit_words[kind].key, limit);
	}
	json_add(object, "limits", limits);
	json_add_text(object, "refused_by", fact_limit_words[incident->refused_by].key);
}

static void add_phase(struct json_object *object, const struct fact_incident *incident)
{
	const char *source = NULL, *basis = NULL;
	if (incident->phase) {
		source = phase_source_names[incident->phase_source];
		basis = basis_names[incident->phase_basis];
	}
	json_add_text(object, "phase", incident->phase);
	json_add_text(object, "phase_source", source);
	json_add_text(object, "phase_basis", basis);
	json_add_text(object, "request", incident->request_phase);
	json_add_number(object, "request_id", incident->request_id);
}

/* true or false. null: the recording does not have what the answer needs. */
static struct json_object *json_answer(enum fact_tristate answer)
{
	if (answer == FACT_CANNOT_TELL)
		return NULL;
	return json_object_new_boolean(answer == FACT_YES);
}

struct json_object *json_incident(const struct facts *facts, struct frames *frames,
				  const struct fact_incident *incident)
{
	struct json_object *object = json_object_new_object();
	json_add_number(object, "id", incident->id);
	json_add_text(object, "kind", kind_name(incident->kind));
	/* "fatal" repeats the outcome for scripts that need one bit */
	json_add_text(object, "outcome", outcome_names[incident->outcome]);
	json_add_text(object, "outcome_why", incident->outcome_why);
	json_add_bool(object, "fatal", incident->outcome == OUTCOME_FATAL);
	json_add_number(object, "time_ns", incident->time_ns);
	json_add_number(object, "pid", incident->pid);
	json_add_number(object, "tid", incident->tid);
	json_add(object, "device", json_device_ordinal(facts, incident->device));
	json_add_text(object, "api", incident->api);
	json_add_text(object, "driver_api", incident->driver_api);
	json_add_number(object, "result", result_of(incident));
	json_add_bool(object, "is_request", incident->is_request);
	json_add_number(object, "requested_bytes", incident->requested_bytes);
	/* the driver's call and the framework may have requested different sizes */
	json_add_number(object, "framework_requested_bytes", incident->framework_requested_bytes);
	json_add_number(object, "least_requested_bytes", incident->least_requested_bytes);
	json_add_number(object, "framework_allocated_bytes", incident->framework_allocated_bytes);
	json_add_number(object, "framework_reserved_bytes", incident->framework_reserved_bytes);
	json_add_number(object, "free_bytes", incident->free_bytes);
	json_add_number(object, "total_bytes", incident->total_bytes);
	json_add(object, "attempts", json_attempts(incident));
	json_add(object, "largest_free", json_largest_free(incident->largest_free));
	json_add(object, "fits_if_packed", json_answer(incident->fits_if_packed));
	json_add_number(object, "packed_bytes", incident->packed_bytes);
	json_add(object, "cause", json_cause(facts, frames, incident->cause));
	json_add(object, "stack", json_stack(frames, &incident->stack));
	json_add(object, "owners", json_owners(incident->owners, incident->owner_count));
	json_add(object, "live", json_live_kinds(incident));
	json_add(object, "sites", json_live_sites(frames, incident));
	json_add_number(object, "rss_bytes", incident->rss_bytes);
	json_add_number(object, "cgroup_bytes", incident->cgroup_bytes);
	json_add_number(object, "cgroup_max_bytes", incident->cgroup_max_bytes);
	json_add_number(object, "host_live_bytes", incident->host_live_bytes);
	add_limits(object, incident);
	json_add_number(object, "resolved_ns", incident->resolved_ns);
	add_phase(object, incident);
	json_add_basis(object, incident->basis);
	return object;
}

/*
 * A call site of "leaks" or "growth". Both intervals are of 95 %. An end that is not finite is
 * null.
 */
struct json_object *json_site(const struct facts *facts, struct frames *frames,
			      const struct fact_site *site)
{
	struct json_object *object = json_object_new_object(), *interval = json_object_new_array(),
		*bytes_interval = json_object_new_array();
	json_object_array_add(bytes_interval, json_object_new_uint64(site->low_bytes));
	json_object_array_add(bytes_interval, json_object_new_uint64(site->high_bytes));
	for (size_t i = 0; i < 2; i++)
		json_object_array_add(interval, json_double(site->interval[i]));
	json_add_text(object, "kind", kind_name(site->kind));
	json_add_text(object, "class", class_names[site->class]);
	json_add_word(object, "shape", shape_names[site->shape]);
	json_add_number(object, "bytes", site->bytes);
	json_add_number(object, "count", site->count);
	json_add_basis(object, site->basis);
	json_add(object, "bytes_interval", bytes_interval);
	json_add_double(object, "slope_bytes_per_s", site->slope_bytes_per_s);
	json_add(object, "interval", interval);
	json_add_number(object, "per_request_bytes", site->per_request_bytes);
	json_add_number(object, "cycles", site->cycles);
	json_add_word(object, "cycles_basis", basis_names[site->cycles_basis]);
	json_add_double(object, "grown_bytes", site->grown_bytes);
	json_add_text(object, "role", site->role);
	json_add_text(object, "owner", site->owner);
	json_add_text(object, "runtime", site->runtime);
	json_object_object_add(object, "holds_blocks", json_object_new_boolean(site->holds_blocks));
	json_add_number(object, "peak_bytes", site->peak_bytes);
	json_add_number(object, "alloc_count", site->alloc_count);
	json_add_number(object, "alloc_bytes", site->alloc_bytes);
	json_add_number(object, "free_count", site->free_count);
	json_add_number(object, "first_ns", site->first_ns);
	json_add_number(object, "last_ns", site->last_ns);
	json_add_number(object, "pid", site->pid);
	json_add(object, "device", json_device_ordinal(facts, site->device));
	json_add_text(object, "api", site->api);
	json_add(object, "stack", json_stack(frames, &site->stack));
	return object;
}
