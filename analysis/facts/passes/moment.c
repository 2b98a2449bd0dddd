/* SPDX-License-Identifier: Apache-2.0 */
/* Which moment a report describes, and where each process stood then. */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/passes/build.h"
#include "analysis/measure/peak_note.h"

#define HOST_CLOCK_NS 10000000ull /* host events have a coarse clock, in milliseconds */
/* A killed process existed a little longer than its last record shows. */
#define LINGER_NS 1000000000ull

/* Times of the report are CLOCK_REALTIME, those of events CLOCK_MONOTONIC. */
static uint64_t monotonic(const struct cuf_header *header, uint64_t realtime_ns)
{
	return realtime_ns - header->start_realtime_ns + header->start_ns;
}

/* In the process of the moment the sequence number is exact. In others it is found by time. */
bool process_at(const struct build *build, uint32_t process, const struct moment *moment,
		uint64_t *seq)
{
	const struct run_process *recorded = &build->run->processes[process];
	const struct fact_process *fact = &build->facts->processes[process];
	uint64_t end = seq_at_end(recorded->reader), gone_ns = fact->end_ns;

	if (!end_may_run(fact->end) && end == CUF_UNKNOWN)
		gone_ns += LINGER_NS;
	*seq = moment->seq;
	if (process == moment->process)
		return true;
	/* What has ended holds nothing while another process runs. */
	if (moment->kind == MOMENT_NOW)
		return end == CUF_UNKNOWN ||
		       !end_may_run(build->facts->processes[moment->process].end);
	if (moment->time_ns < fact->start_ns ||
	    (moment->time_ns > gone_ns && !end_may_run(fact->end)))
		return false;
	*seq = seq_at_time(recorded->events, monotonic(&recorded->reader->header, moment->time_ns));
	if (end != CUF_UNKNOWN && *seq > end)
		*seq = end;
	return true;
}

/* The last fatal incident; of one device, or the one of the process that failed first (FACT_NONE).
 */
static bool is_fatal_of(const struct build *build, const struct fact_incident *incident,
			uint32_t device)
{
	if (device == FACT_NONE)
		return incident->id == build->facts->fatal_incident;
	return incident->outcome == OUTCOME_FATAL && incident->device == device;
}

static bool last_fatal(const struct build *build, uint32_t device, struct moment *out)
{
	for (size_t i = build->facts->incident_count; i--;) {
		const struct fact_incident *incident = &build->facts->incidents[i];
		if (!is_fatal_of(build, incident, device))
			continue;
		*out = (struct moment){ .kind = MOMENT_INCIDENT,
					.process = incident->process,
					.seq = incident->settled_seq,
					.time_ns = incident->time_ns,
					.incident_id = incident->id };
		return true;
	}
	return false;
}

/* The end of a process that is still running is now. */
static struct moment end_of(const struct build *build, uint32_t process)
{
	uint64_t seq = seq_at_end(build->run->processes[process].reader);
	bool running = end_may_run(build->facts->processes[process].end);
	return (struct moment){ .kind = running ? MOMENT_NOW : MOMENT_END,
				.process = process,
				.seq = seq,
				.time_ns = build->facts->processes[process].end_ns };
}

/* Address ranges and pools are no memory, and framework blocks are inside other blocks. */
static uint64_t live_device_bytes(struct build *build, uint32_t process, uint64_t seq,
				  unsigned ordinal)
{
	struct live_sums sums = run_sums_counted(&build->run->processes[process], seq);
	uint64_t bytes = 0;

	for (unsigned device = 0; device <= CUF_DEVICES_MAX; device++)
		for (unsigned kind = 0; kind < CUF_KIND_MAX; kind++)
			if ((ordinal == CUF_DEVICE_NONE || device == ordinal) &&
			    kind != CUF_KIND_RESERVATION && kind != CUF_KIND_MAPPING &&
			    kind != CUF_KIND_POOL && kind != CUF_KIND_FRAMEWORK)
				bytes += sums.bytes[device][kind];
	return bytes;
}

/* What each process held of a device at its own end. */
struct held_at_end {
	struct build *build;
	uint32_t device;
	uint64_t *bytes; /* by process; CUF_UNKNOWN: it does not use the device */
};

static void measure_at_end(void *context, size_t i)
{
	const struct held_at_end *held = context;
	struct build *build = held->build;
	unsigned ordinal = CUF_DEVICE_NONE;
	uint32_t process = (uint32_t)i;

	if (held->device != FACT_NONE)
		ordinal = ordinal_in(build, held->device, process);
	held->bytes[i] = CUF_UNKNOWN;
	if (held->device != FACT_NONE && ordinal == CUF_DEVICE_NONE)
		return;
	held->bytes[i] = live_device_bytes(build, process, end_of(build, process).seq, ordinal);
	run_rest(build->run, &build->run->processes[i]);
}

/* The process that held most of a device at its own end; the first of those that held nothing. */
static uint32_t largest_at_end(struct build *build, uint32_t device)
{
	struct held_at_end held = { build, device, NULL };
	uint32_t largest = FACT_NONE;

	if (build->groups[device].count == 1)
		return build->groups[device].members[0].process;
	held.bytes = xalloc_zeroed(build->run->count, sizeof *held.bytes);
	parallel_each(build->run->count, build->options.threads, measure_at_end, &held);
	for (uint32_t p = 0; p < build->run->count; p++)
		if (held.bytes[p] != CUF_UNKNOWN &&
		    (largest == FACT_NONE || held.bytes[p] > held.bytes[largest]))
			largest = p;
	free(held.bytes);
	return largest == FACT_NONE ? 0 : largest;
}

/* Whom the report is about when no request was fatal. */
static uint32_t process_to_explain(struct build *build)
{
	struct held_at_end held = { build, FACT_NONE, NULL };
	uint32_t process;

	if (build->run->count == 1)
		return 0;
	held.bytes = xalloc_zeroed(build->run->count, sizeof *held.bytes);
	parallel_each(build->run->count, build->options.threads, measure_at_end, &held);
	process = main_process(build->facts, held.bytes);
	free(held.bytes);
	return process;
}

/* A moment given by time: --at TIME, or a peak. */
static struct moment at_time(const struct build *build, uint32_t process, uint64_t time_ns)
{
	const struct run_process *recorded = &build->run->processes[process];
	return (struct moment){ .kind = MOMENT_AT,
				.process = process,
				.time_ns = time_ns,
				.seq = seq_at_time(recorded->events,
						   monotonic(&recorded->reader->header, time_ns)) };
}

/* A moment that was requested but does not exist is replaced by the automatic one. */
struct moment moment_asked(struct build *build)
{
	struct moment moment;
	uint64_t start_ns = build->facts->processes[0].start_ns;
	switch (build->options.at) {
	case FACTS_AT_NOW:
		moment = end_of(build, process_to_explain(build));
		moment.kind = MOMENT_NOW;
		moment.seq = CUF_UNKNOWN;
		return moment;
	case FACTS_AT_INCIDENT:
		for (size_t i = 0; i < build->facts->incident_count; i++) {
			const struct fact_incident *incident = &build->facts->incidents[i];
			if (incident->id == build->options.at_value)
				return (struct moment){ .kind = MOMENT_INCIDENT,
							.process = incident->process,
							.seq = incident->settled_seq,
							.time_ns = incident->time_ns,
							.incident_id = incident->id };
		}
		break;
	case FACTS_AT_TIME:
		if (!__builtin_add_overflow(start_ns, build->options.at_value, &start_ns))
			return at_time(build, process_to_explain(build), start_ns);
		break;
	default: break;
	}
	if (build->options.at != FACTS_AT_END && last_fatal(build, FACT_NONE, &moment))
		return moment;
	return end_of(build, process_to_explain(build));
}

/* Each process has its own peak of host memory, as each device has. */
static void find_host_peaks(struct build *build)
{
	build->host_peaks = arena_zeroed(build->arena, build->run->count,
					 sizeof *build->host_peaks);
	for (uint32_t p = 0; p < build->run->count; p++) {
		const struct run_process *from = &build->run->processes[p];
		struct host_means means = host_means_of(from->reader, &from->meta);
		struct cuf_host_peak *note = arena_zeroed(build->arena, 1, sizeof *note);
		if (!peak_note_or_events(from->reader, &means, note, &build->host_peaks[p]))
			build->host_peaks[p] = (struct heap_moment){ .time_ns = CUF_UNKNOWN,
								     .events = CUF_UNKNOWN };
	}
}

/* Whoever is in the report's moment is in the peaks and charts, too, until then. */
static uint64_t gone_at(const struct build *build, uint32_t process)
{
	const struct fact_process *fact = &build->facts->processes[process];
	uint64_t seq;

	if (end_may_run(fact->end))
		return CUF_UNKNOWN;
	if (!is_known(build->moment.time_ns) ||
	    !process_at(build, process, &build->moment, &seq))
		return fact->end_ns;
	return most_of(fact->end_ns, build->moment.time_ns);
}

void build_moment(struct build *build)
{
	build->moment = moment_asked(build);
	if (build->options.at == FACTS_AT_PEAK)
		find_host_peaks(build);
	build->facts->focus = build->moment.process;
	build->facts->moment = (struct fact_moment){
		.kind = build->moment.kind,
		.time_ns = build->moment.time_ns,
		.process = build->moment.process,
		.seq = build->moment.seq,
		.incident = build->moment.incident_id,
	};
	for (uint32_t p = 0; p < build->run->count; p++) {
		struct fact_process *process = &build->facts->processes[p];
		process->moment_seq = seq_at_moment(build, p);
		process->gone_ns = gone_at(build, p);
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			process->device_of[d] = group_of(build, p, d);
	}
}

/* A device's own moment: its own last fatal incident, else the run's if anybody who uses it was
 * there, else its own end. */
struct moment moment_of_device(struct build *build, uint32_t device)
{
	const struct device_group *group = &build->groups[device];
	struct moment moment = build->moment;
	uint64_t seq;
	if (build->options.at == FACTS_AT_PEAK) {
		const struct fact_device *peak = &build->facts->devices[device];
		if (is_known(peak->peak_ns))
			return at_time(build, peak->peak_process, peak->peak_ns);
	}
	if (build->options.at == FACTS_AT_AUTO && last_fatal(build, device, &moment))
		return moment;
	if (moment.kind == MOMENT_INCIDENT || moment.kind == MOMENT_AT)
		for (size_t i = 0; i < group->count; i++)
			if (process_at(build, group->members[i].process, &moment, &seq))
				return moment;
	if (build->options.at == FACTS_AT_NOW)
		return moment;
	return end_of(build, largest_at_end(build, device));
}

/* The recorder put the clock of the host's events right at this instant, so they can be ordered
 * to the nanosecond. */
static bool is_marked(const struct build *build, const struct moment *moment)
{
	return moment->kind == MOMENT_INCIDENT &&
	       build->facts->incidents[moment->incident_id - 1].kind == CUF_KIND_HOST;
}

/* When the work of a process ended, before exit handlers and destructors. */
static uint64_t work_end_ns(const struct reader *reader)
{
	const struct cuf_header *header = &reader->header;
	if (header->work_end_ns)
		return header->work_end_ns;
	if (header->end_kind == CUF_END_EXIT && header->end_ns)
		return header->end_ns;
	return CUF_UNKNOWN;
}

/* Host events carry milliseconds, so a moment close to the end counts as the end. */
uint64_t host_time_of(const struct build *build, uint32_t process)
{
	const struct reader *reader = build->run->processes[process].reader;
	const struct moment *moment = &build->moment;
	uint64_t seq;
	if (build->host_peaks)
		return build->host_peaks[process].time_ns;
	if (moment->kind == MOMENT_NOW || !process_at(build, process, moment, &seq))
		return CUF_UNKNOWN;
	if (moment->kind == MOMENT_END)
		return work_end_ns(reader);
	/* host events are ordered by a coarse clock: bring back only what is clearly earlier */
	if (is_marked(build, moment) ||
	    moment->time_ns + 10 * HOST_CLOCK_NS < build->facts->processes[process].end_ns)
		return moment->time_ns - reader->header.start_realtime_ns + reader->header.start_ns;
	return work_end_ns(reader);
}

uint64_t host_failed_at(const struct build *build, uint32_t process)
{
	const struct moment *moment = &build->moment;

	if (build->host_peaks || moment->process != process || !is_marked(build, moment))
		return CUF_UNKNOWN;
	return moment->time_ns;
}

struct heap_moment host_moment_of(const struct build *build, uint32_t process)
{
	if (build->host_peaks)
		return build->host_peaks[process];
	return (struct heap_moment){ .time_ns = host_time_of(build, process),
				     .events = CUF_UNKNOWN };
}

/* The moment of the run in this process; its own end when it was not there then. */
uint64_t seq_at_moment(const struct build *build, uint32_t process)
{
	const struct reader *reader = build->run->processes[process].reader;
	uint64_t seq;
	
	if (process_at(build, process, &build->moment, &seq))
		return seq;
	if (!reader->header.end_kind || !reader->header.end_seq)
		return CUF_UNKNOWN;
	return reader->header.end_seq;
}

/* The peak of a device is a time; each process that uses it stood somewhere then. */
static uint64_t seq_at_peak(struct build *build, uint32_t process, uint32_t device)
{
	struct moment moment = moment_of_device(build, device);
	uint64_t seq;

	return process_at(build, process, &moment, &seq) ? seq : 0;
}

void build_live_moments(struct build *build)
{
	for (uint32_t p = 0; p < build->run->count; p++) {
		struct fact_process *process = &build->facts->processes[p];
		struct heap_moment host = host_moment_of(build, p);

		process->live.host_ns = host.time_ns;
		process->live.host_events = host.events;
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
			process->live.device_seq[d] = process->moment_seq;
			if (build->options.at != FACTS_AT_PEAK ||
			    process->device_of[d] == FACT_NONE)
				continue;
			process->live.device_seq[d] = seq_at_peak(build, p, process->device_of[d]);
		}
	}
}
