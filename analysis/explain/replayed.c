/* SPDX-License-Identifier: Apache-2.0 */
/* See replayed.h. */
#include "analysis/explain/replayed.h"

#include "analysis/base/numbers.h"

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

static struct trace_options at_incident(const struct run_process *process,
					const struct fact_incident *incident)
{
	struct trace_options options = { .refused_seq = incident->seq,
					 .settled_seq = incident->settled_seq,
					 .free_bytes = incident->free_bytes,
					 .total_bytes = incident->total_bytes };
	struct cuf_incident record;
	if (reader_incident(process->reader, incident->number, &record))
		options.device = record.device;
	return options;
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

struct trace *replayed_trace(struct run *run, const struct facts *facts, size_t steps_max,
			     struct replayed *about, const char **why)
{
	struct trace_options options;
	struct run_process *process;
	struct trace *trace;
	*about = (struct replayed){ incident_of(facts), facts->focus };
	if (about->incident)
		about->process = about->incident->process;
	if (about->process >= run->count) {
		*why = "no process of the run asked for device memory";
		return NULL;
	}
	process = &run->processes[about->process];
	options = about->incident ? at_incident(process, about->incident) : at_end(process);
	options.steps_max = steps_max;
	trace = trace_new(process, &options, run->arena);
	if (!about->incident && is_known(options.free_bytes)) {
		const struct cuf_device *device =
			reader_at(process->reader, CUF_SEC_DEVICES, options.device);
		trace->capacity_bytes = options.free_bytes + device->first_live_bytes;
	}
	if (trace->count)
		return trace;
	*why = "no request for device memory is recorded";
	trace_free(trace);
	return NULL;
}
