/* SPDX-License-Identifier: Apache-2.0 */
/* struct fact_incident: ladders of all processes by time, then each with the state of its device at
 * that moment. */
#include "analysis/facts/passes/device_view.h"
#include "analysis/symbols/frameworks.h"
#include "analysis/base/numbers.h"
#include "analysis/base/key_values.h"

#include <stdlib.h>
#include <string.h>

/* The last attempt has the state that the program ended with. */
/* The requested bytes of an incident that is a request; errors of other calls have no size. */
static uint64_t requested_of(const struct cuf_incident *incident)
{
	if (!incident->is_request)
		return CUF_UNKNOWN;
	return incident->requested_bytes;
}

/* The function that the program called: a label where a hook serves several functions. */
static const char *api_of(const struct facts *facts, uint32_t process,
			  const struct cuf_incident *incident)
{
	const char *name = fact_hook_name(&facts->processes[process],
					  incident->label ? incident->label : incident->hook);
	return name ? name : "";
}

/* The driver function that failed, behind a runtime function or a framework. */
static const char *driver_api_of(const struct facts *facts, uint32_t process,
				 const struct cuf_incident *incident)
{
	const char *name = fact_hook_name(&facts->processes[process], incident->hook);
	return name ? name : "";
}

/* Attempts at the driver. A framework that gave up reports the true request, which is not an
 * attempt, unless it is the only one: then nobody queried the driver. */
static size_t driver_tries(const struct ladder *ladder)
{
	if (ladder->try_count > 1 && ladder_last(ladder)->kind == CUF_KIND_FRAMEWORK)
		return ladder->try_count - 1;
	return ladder->try_count;
}

/* The driver was not asked, or its answer was not the reason: the framework itself is what refused.
 */
static const char *framework_name(const struct facts *facts, uint32_t process)
{
	const struct meta *meta = &facts->run->processes[process].meta;
	for (size_t i = meta->text_count; i--;) {
		const char *name;
		size_t bytes;

		if (meta->texts[i].type != CUF_META_FRAMEWORK)
			continue;
		name = key_value(meta->texts[i].text, "framework", &bytes);
		if (name && bytes)
			return arena_text(facts->arena, name, bytes);
	}
	return "PyTorch";
}

/* One row for each attempt at the driver, oldest first. */
static void fill_attempts(const struct facts *facts, uint32_t process, const struct ladder *ladder,
			  struct fact_incident *failure)
{
	const struct reader *reader = facts->run->processes[process].reader;
	failure->attempt_count = driver_tries(ladder);
	failure->attempts = arena_zeroed(facts->arena, failure->attempt_count,
					 sizeof *failure->attempts);
	for (size_t i = 0; i < failure->attempt_count; i++) {
		const struct cuf_incident *incident = &ladder->tries[i];
		failure->attempts[i] = (struct fact_attempt){
			.number = incident->number,
			.time_ns = reader_realtime(reader, incident->time_ns),
			.seq = incident->seq,
			.requested_bytes = requested_of(incident),
			.free_bytes = incident->free_bytes,
			.total_bytes = incident->total_bytes,
			.result = incident->result,
			.api = api_of(facts, process, incident),
			.driver_api = driver_api_of(facts, process, incident)
		};
		if (incident->kind == CUF_KIND_FRAMEWORK)
			failure->attempts[i].api = failure->attempts[i].driver_api =
				framework_name(facts, process);
	}
}

/* The largest call sites at the failure, as the recorder measured them: they are exact even if the
 * replay is not. */
static void fill_sites(const struct facts *facts, uint32_t process,
		       const struct cuf_incident *incident, struct fact_incident *failure)
{
	struct fact_live_site *sites;
	failure->site_count = least_of(incident->site_count, CUF_INCIDENT_SITES);
	sites = arena_zeroed(facts->arena, failure->site_count, sizeof *sites);
	for (size_t s = 0; s < failure->site_count; s++) {
		sites[s] = (struct fact_live_site){ { .process = process,
						      .id = incident->sites[s].stack },
						    incident->sites[s].kind,
						    incident->sites[s].bytes,
						    incident->sites[s].count };
		stack_fill(facts, &sites[s].stack, incident->time_ns);
	}
	failure->sites = sites;
}

/* What a framework reports in addition to the driver: the true request, and what it had. */
static void fill_framework(const struct ladder *ladder, struct fact_incident *failure)
{
	const struct cuf_incident *incident = ladder_last(ladder);
	failure->framework_requested_bytes = failure->least_requested_bytes = CUF_UNKNOWN;
	if (incident->kind == CUF_KIND_FRAMEWORK)
		failure->framework_requested_bytes = incident->requested_bytes;
	failure->framework_allocated_bytes = incident->framework_allocated_bytes;
	failure->framework_reserved_bytes = incident->framework_reserved_bytes;
	if (ladder->rolled_back_bytes)
		failure->least_requested_bytes = ladder->rolled_back_bytes +
						 incident->requested_bytes;
}

/* What is free was asked of the driver at its own failures; what a failed request has
 * released since then is free, too. */
static void fill_free(const struct ladder *ladder, struct fact_incident *incident)
{
	incident->free_bytes = incident->total_bytes = CUF_UNKNOWN;
	for (size_t i = ladder->try_count; i-- && incident->free_bytes == CUF_UNKNOWN;) {
		incident->free_bytes = ladder->tries[i].free_bytes;
		incident->total_bytes = ladder->tries[i].total_bytes;
	}
	if (incident->free_bytes != CUF_UNKNOWN)
		incident->free_bytes += ladder->rolled_back_bytes;
}

/* A limit of 0 is none: such a recording was made without them. */
static uint64_t limit_or_none(uint64_t max_bytes) { return max_bytes ? max_bytes : CUF_UNKNOWN; }

/* Of the attempt that asked the kernel. */
static void fill_limits(const struct cuf_incident *asked, struct fact_incident *failure)
{
	failure->limits[LIMIT_ADDRESS] = (struct fact_limit){
		asked->address_bytes, limit_or_none(asked->address_max_bytes)
	};
	failure->limits[LIMIT_DATA] = (struct fact_limit){ asked->data_bytes,
							   limit_or_none(asked->data_max_bytes) };
	failure->refused_by = LIMIT_NONE;
	if (asked->kind == CUF_KIND_HOST)
		failure->refused_by = fact_limit_refused(failure->limits, asked->requested_bytes,
							 !strcmp(failure->driver_api, "mprotect"));
}

/* What the failure was is taken from the last attempt at the driver; what was held, from the last
 * record. */
static void fill_incident(const struct facts *facts, uint32_t process, const struct ladder *ladder,
			  struct fact_incident *failure)
{
	const struct reader *reader = facts->run->processes[process].reader;
	const struct cuf_incident *incident = ladder_last(ladder),
				  *asked = &ladder->tries[driver_tries(ladder) - 1];
	*failure = (struct fact_incident){
		.outcome = ladder->outcome,
		.outcome_why = ladder->why,
		.time_ns = reader_realtime(reader, incident->time_ns),
		.process = process,
		.pid = reader->header.pid,
		.tid = incident->tid,
		.device = fact_device_of(&facts->processes[process], incident->device),
		.kind = asked->kind,
		.is_request = incident->is_request,
		.api = api_of(facts, process, asked),
		.driver_api = driver_api_of(facts, process, asked),
		.result = asked->result,
		.seq = incident->seq,
		.settled_seq = ladder->settled_seq,
		.number = incident->number,
		.requested_bytes = requested_of(&ladder->tries[0]),
		.fits_if_packed = FACT_CANNOT_TELL,
		.packed_bytes = CUF_UNKNOWN,
		.stack = { .process = process,
			   .id = incident->stack ? incident->stack : asked->stack },
		.rss_bytes = incident->rss_bytes,
		.cgroup_bytes = incident->cgroup_bytes,
		.cgroup_max_bytes = incident->cgroup_max_bytes,
		.host_live_bytes = incident->host_live_bytes,
		.resolved_ns = reader_realtime(reader, ladder->resolved_ns),
		.basis = BASIS_OBSERVED,
	};
	memcpy(failure->live_bytes, incident->live_bytes, sizeof failure->live_bytes);
	memcpy(failure->live_count, incident->live_count, sizeof failure->live_count);
	if (asked->kind == CUF_KIND_FRAMEWORK)
		failure->api = failure->driver_api = framework_name(facts, process);
	fill_framework(ladder, failure);
	fill_limits(asked, failure);
	fill_free(ladder, failure);
	fill_attempts(facts, process, ladder, failure);
	fill_sites(facts, process, incident, failure);
	stack_fill(facts, &failure->stack, incident->time_ns);
}

/* By time, then by process and sequence number, so that the ids are the same in every report. */
static int by_time(const void *a, const void *b)
{
	const struct fact_incident *left = a, *right = b;
	if (left->time_ns != right->time_ns)
		return compare_numbers(left->time_ns, right->time_ns);
	if (left->process != right->process)
		return compare_numbers(left->process, right->process);
	return compare_numbers(left->seq, right->seq);
}

/* Threads that fail this soon after one another fail for the same reason. */
#define BURST_NS 2000000000ull

/* True: the second failed right after the first, for the same memory. */
static bool is_same_burst(const struct fact_incident *before, const struct fact_incident *after)
{
	return before->outcome == OUTCOME_FATAL && before->process == after->process &&
	       before->device == after->device && before->kind == after->kind &&
	       after->time_ns - before->time_ns <= BURST_NS;
}

/* True: the thread has a failure in incidents[from] to incidents[to]. Then it had survived an
 * earlier one. */
static bool has_failed(const struct facts *facts, uint32_t tid, size_t from, size_t to)
{
	for (size_t i = from; i <= to; i++)
		if (facts->incidents[i].tid == tid)
			return true;
	return false;
}

/* Memory ran out when the first thread failed. What the others saw is what it had left while its
 * stack was unwound, so their failures explain less. */
static size_t first_of_burst(const struct facts *facts, size_t last)
{
	const struct fact_incident *incidents = facts->incidents;
	size_t first = last;

	while (first && is_same_burst(&incidents[first - 1], &incidents[first]) &&
	       !has_failed(facts, incidents[first - 1].tid, first, last))
		first--;
	return first;
}

/* The failure that ended each process. */
static void find_fatal(struct facts *facts)
{
	for (size_t i = facts->incident_count; i--;) {
		const struct fact_incident *incident = &facts->incidents[i];
		struct fact_process *process = &facts->processes[incident->process];

		if (incident->outcome == OUTCOME_FATAL && !process->fatal_incident)
			process->fatal_incident = facts->incidents[first_of_burst(facts, i)].id;
	}
}

/* Ids count from 1 over all processes, by time. 0 is "none". */
void build_incidents(struct facts *facts, const struct exit_reason *ends)
{
	struct ladders *ladders = xalloc_zeroed(facts->process_count, sizeof *ladders);
	size_t count = 0;
	for (uint32_t p = 0; p < facts->process_count; p++) {
		ladders_init(&ladders[p], &facts->run->processes[p], &ends[p]);
		count += ladders[p].count;
	}
	facts->incidents = arena_zeroed(facts->arena, count, sizeof *facts->incidents);
	for (uint32_t p = 0; p < facts->process_count; p++) {
		for (size_t i = 0; i < ladders[p].count; i++)
			fill_incident(facts, p, &ladders[p].items[i],
				      &facts->incidents[facts->incident_count++]);
		ladders_fini(&ladders[p]);
	}
	free(ladders);
	if (count)
		qsort(facts->incidents, count, sizeof *facts->incidents, by_time);
	for (size_t i = 0; i < count; i++)
		facts->incidents[i].id = i + 1;
	find_fatal(facts);
}

/* Allocators that keep freed memory inside blocks that look full from here. PyTorch's is none of
 * them where it reports its blocks. */
static bool has_opaque_segments(const struct meta *meta, bool pytorch_seen)
{
	const struct framework *framework;

	for (size_t i = 0; (framework = framework_at(i)); i++) {
		if (pytorch_seen && !strcmp(framework->name, "PyTorch"))
			continue;
		for (size_t m = 0; m < meta->module_count; m++)
			if (framework_keeps(framework, meta->modules[m].path))
				return true;
	}
	return false;
}

/* What was requested in one piece, as well as it is known. */
static uint64_t needed_bytes(const struct fact_incident *incident)
{
	if (incident->framework_requested_bytes != CUF_UNKNOWN)
		return incident->framework_requested_bytes;
	if (incident->least_requested_bytes != CUF_UNKNOWN)
		return incident->least_requested_bytes;
	return incident->attempts[incident->attempt_count - 1].requested_bytes;
}

/* Whether the request would fit if free memory were in one piece; unknown where an allocator may
 * have free memory that is not visible. */
static void judge_packing(const struct facts *facts, struct fact_incident *incident,
			  const struct device_view *view)
{
	incident->packed_bytes = packed_bytes(&view->focus, incident->free_bytes);
	if (!incident->is_request || incident->packed_bytes == CUF_UNKNOWN ||
	    incident->kind == CUF_KIND_PINNED || incident->kind == CUF_KIND_REGISTERED)
		incident->fits_if_packed = FACT_CANNOT_TELL;
	else if (incident->packed_bytes >= needed_bytes(incident))
		incident->fits_if_packed = FACT_YES;
	else
		incident->fits_if_packed = FACT_NO;
	if (incident->fits_if_packed == FACT_NO &&
	    has_opaque_segments(&facts->run->processes[incident->process].meta,
				view->focus.framework_known))
		incident->fits_if_packed = FACT_CANNOT_TELL;
}

/* Of incidents too old for a view: what the recorder itself measured. */
static void fill_layers_recorded(struct fact_incident *incident)
{
	for (unsigned layer = 0; layer < LAYER_MAX; layer++)
		incident->largest_free[layer] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (incident->free_bytes != CUF_UNKNOWN)
		incident->largest_free[LAYER_DEVICE] = (struct fact_layer){ incident->free_bytes,
									    "upper bound" };
}

/* The state of the device at the incident: owners, layers, and whether packing would help. */
static void fill_view(const struct facts *facts, struct block_memory *memory,
		      struct fact_incident *incident)
{
	struct cuf_incident record;
	struct fact_moment moment = {
		.kind = MOMENT_INCIDENT,
		.process = incident->process,
		.seq = incident->settled_seq,
		.time_ns = incident->time_ns,
		.incident = incident->id,
	};
	struct device_view view;

	if (incident->device == FACT_NONE || !incident_at(facts, incident, &record))
		return;
	device_view_at(facts, memory, incident->device, &moment, &record, &view);
	/* A framework gave up by itself, so the recorder did not query the driver. */
	if (incident->free_bytes == CUF_UNKNOWN) {
		incident->free_bytes = view.levels.free_bytes;
		incident->total_bytes = view.levels.total_bytes;
	}
	incident->owners = view.owners;
	incident->owner_count = view.owner_count;
	incident->basis = basis_if_exact(view.exact);
	incident->rounded_bytes = view.rounded_bytes;
	memcpy(incident->largest_free, view.layers, sizeof incident->largest_free);
	judge_packing(facts, incident, &view);
}

/* The last ones have a view. */
void build_incident_views(struct facts *facts, struct block_memory *memory)
{
	size_t views = 0;

	for (size_t i = facts->incident_count; i--;) {
		struct fact_incident *incident = &facts->incidents[i];

		fill_layers_recorded(incident);
		if (incident_has_view(incident, views)) {
			fill_view(facts, memory, incident);
			views++;
		}
		incident->largest_free[LAYER_HOST] = host_layer_at(facts, incident->process,
								   incident->time_ns);
	}
}
