/* SPDX-License-Identifier: Apache-2.0 */
/* See replayed.h. */
#include "analysis/explain/replayed.h"

#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/symbols/role_names.h"

/* The fatal incident, else the last request for device memory that was not served. */
static const struct fact_incident *incident_of(const struct facts *facts)
{
	const struct fact_incident *found = NULL;
	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *incident = &facts->incidents[i];
		if (incident->id == facts->fatal_incident && incident->device != FACT_NONE)
			return incident;
		if (incident->is_request && incident->device != FACT_NONE &&
		    incident->outcome != OUTCOME_RECOVERED)
			found = incident;
	}
	return facts->fatal_incident ? NULL : found;
}

/* The device on which the process had most. */
static unsigned busiest(const struct reader *reader)
{
	unsigned best = 0;
	uint64_t most = 0;
	for (unsigned i = 0; i < CUF_DEVICES_MAX; i++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, i);
		if (device && device->present && device->peak_bytes > most) {
			most = device->peak_bytes;
			best = i;
		}
	}
	return best;
}

static struct trace_options at_incident(const struct facts *facts,
					const struct fact_incident *incident)
{
	const struct fact_process *process = &facts->processes[incident->process];

	return (struct trace_options){ .refused_seq = incident->seq,
				       .settled_seq = incident->settled_seq,
				       .free_bytes = incident->free_bytes,
				       .total_bytes = incident->total_bytes,
				       .device = fact_ordinal_of(process, incident->device) };
}

static struct trace_options at_end(const struct run_process *process)
{
	struct trace_options options = { .refused_seq = CUF_UNKNOWN, .settled_seq = CUF_UNKNOWN };
	const struct cuf_device *device;
	options.device = busiest(process->reader);
	device = reader_at(process->reader, CUF_SEC_DEVICES, options.device);
	options.free_bytes = options.total_bytes = CUF_UNKNOWN;
	if (device && device->present) {
		options.total_bytes = device->total_bytes;
		if (is_known(device->first_free_bytes)) /* all that it could have had */
			options.free_bytes = device->first_free_bytes;
	}
	return options;
}

/* ---- roles ---- */

/* The number of a role's name; CUF_ROLE_NONE where there is none. */
static uint8_t role_number(const char *name)
{
	for (uint8_t role = 1; name && role < CUF_ROLE_MAX; role++)
		if (role_of_enum(role) && !strcmp(role_of_enum(role), name))
			return role;
	return CUF_ROLE_NONE;
}

static void note_sites(struct hash_index *roles, uint32_t process, const struct fact_site *sites,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sites[i].process == process && sites[i].stack.id && role_number(sites[i].role))
			*hash_index_place(roles, sites[i].stack.id) = role_number(sites[i].role);
}

/* In the index, where 0 means that a stack is new. */
enum { ROLE_UNKNOWN = CUF_ROLE_MAX };

/* Blocks that nobody labelled have the role that the report found for their call site. */
static void take_roles(struct trace *trace, const struct facts *facts, uint32_t process)
{
	struct hash_index roles;
	hash_index_init(&roles, 256);
	note_sites(&roles, process, facts->leaks, facts->leak_count);
	note_sites(&roles, process, facts->growth, facts->growth_count);
	for (size_t i = 0; i < trace->count; i++) {
		struct trace_step *step = &trace->steps[i];
		uint32_t *role;
		if (!step->stack || step->role || step->op == TRACE_FREE)
			continue;
		role = hash_index_place(&roles, step->stack);
		if (!*role)
			*role = ROLE_UNKNOWN;
		step->role = (uint8_t)(*role % ROLE_UNKNOWN);
	}
	hash_index_fini(&roles);
}

/* ---- pools of ggml ---- */

static const struct {
	const char *function;
	unsigned flag;
} pool_functions[] = {
	{ "ggml_cuda_pool_vmm", TRACE_GGML_VMM },
	{ "ggml_cuda_pool_leg", TRACE_GGML_LEGACY },
};

static unsigned pool_of_function(const char *name)
{
	for (size_t i = 0; name && i < sizeof pool_functions / sizeof *pool_functions; i++)
		if (strstr(name, pool_functions[i].function))
			return pool_functions[i].flag;
	return 0;
}

/* The pool is the caller of the allocation, or close to it. */
enum { POOL_FRAMES_MAX = 4 };

static unsigned pool_of_stack(const struct facts *facts, uint32_t process,
			      const struct trace_step *step)
{
	struct fact_stack frames = { .process = process, .id = step->stack };
	unsigned flag = 0;
	stack_fill(facts, &frames, CUF_UNKNOWN);
	for (uint32_t i = 0; i < frames.depth && i < POOL_FRAMES_MAX && !flag; i++)
		flag = native_names_tell(facts->run->symbols, &facts->processes[process],
					 frames.addrs[i], step->time_ns, pool_of_function);
	return flag;
}

static void take_pools(struct trace *trace, const struct facts *facts, uint32_t process)
{
	struct hash_index known; /* a stack's flag, plus one */
	hash_index_init(&known, 256);
	for (size_t i = 0; i < trace->count; i++) {
		struct trace_step *step = &trace->steps[i];
		uint32_t *place;
		if (!step->stack || step->kind == CUF_KIND_FRAMEWORK)
			continue;
		place = hash_index_place(&known, step->stack);
		if (!*place)
			*place = pool_of_stack(facts, process, step) + 1;
		step->flags |= (uint8_t)(*place - 1);
	}
	hash_index_fini(&known);
}

/* ---- other processes ---- */

/* Named by NVML, or by their own recordings. Otherwise what this process could not have, less a
 * context: a lower bound. */
static uint64_t others_of(const struct trace *trace, const struct fact_incident *incident)
{
	uint64_t named = CUF_UNKNOWN;
	for (size_t i = 0; incident && i < incident->owner_count; i++) {
		const struct fact_owner_row *row = &incident->owners[i];
		if (row->kind == OWNER_OTHER_PROCESSES && row->in_sum && is_known(row->bytes))
			named = known_or_zero(named) + row->bytes;
	}
	if (is_known(named) || !is_known(trace->total_bytes) || !is_known(trace->capacity_bytes))
		return named;
	return subtract_to_zero(trace->total_bytes,
				trace->capacity_bytes + context_allowance(trace->total_bytes));
}

/* The process that it is about; none: none of the run asked for device memory. */
static struct replayed about_of(const struct facts *facts)
{
	struct replayed about = { incident_of(facts), facts->focus };

	if (about.incident)
		about.process = about.incident->process;
	return about;
}

static struct trace_options options_of(const struct facts *facts, const struct replayed *about)
{
	return about->incident ? at_incident(facts, about->incident)
			       : at_end(&facts->run->processes[about->process]);
}

uint64_t replayed_since(const struct facts *facts, uint32_t process, size_t steps_max)
{
	if (about_of(facts).process != process)
		return 0;
	return trace_since(facts->run->processes[process].events, steps_max);
}

struct trace_walk *replayed_begin(const struct facts *facts, uint32_t process, size_t steps_max,
				  struct sweep_consumer *consumer)
{
	struct replayed about = about_of(facts);
	struct trace_options options;

	if (about.process != process)
		return NULL;
	options = options_of(facts, &about);
	options.steps_max = steps_max;
	return trace_begin(&facts->run->processes[process], &options, consumer);
}

struct trace *replayed_trace(struct trace_walk *walk, const struct facts *facts,
			     struct replayed *about)
{
	struct trace_options options;
	struct run_process *process;
	struct trace *trace;

	*about = about_of(facts);
	process = &facts->run->processes[about->process];
	options = options_of(facts, about);
	trace = trace_end(walk, &options, facts->arena);
	if (!about->incident && is_known(options.free_bytes)) {
		const struct cuf_device *device =
			reader_at(process->reader, CUF_SEC_DEVICES, options.device);
		trace->capacity_bytes = options.free_bytes + device->first_live_bytes;
	}
	take_roles(trace, facts, about->process);
	take_pools(trace, facts, about->process);
	trace->others_bytes = others_of(trace, about->incident);
	if (trace->count)
		return trace;
	trace_free(trace);
	return NULL;
}
