/* SPDX-License-Identifier: Apache-2.0 */
/* Which moment a report describes, and where each process stood then. */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/passes/passes.h"
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
bool process_at(const struct facts *facts, uint32_t process, const struct fact_moment *moment,
		uint64_t *seq)
{
	const struct run_process *recorded = &facts->run->processes[process];
	const struct fact_process *fact = &facts->processes[process];
	uint64_t end = seq_at_end(recorded->reader), gone_ns = fact->end_ns;

	if (!end_may_run(fact->end) && end == CUF_UNKNOWN)
		gone_ns += LINGER_NS;
	*seq = moment->seq;
	if (process == moment->process)
		return true;
	/* What has ended holds nothing while another process runs. */
	if (moment->kind == MOMENT_NOW)
		return end == CUF_UNKNOWN ||
		       !end_may_run(facts->processes[moment->process].end);
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
static bool is_fatal_of(const struct facts *facts, const struct fact_incident *incident,
			uint32_t device)
{
	if (device == FACT_NONE)
		return incident->id == facts->fatal_incident;
	return incident->outcome == OUTCOME_FATAL && incident->device == device;
}

static bool last_fatal(const struct facts *facts, uint32_t device, struct fact_moment *out)
{
	for (size_t i = facts->incident_count; i--;) {
		const struct fact_incident *incident = &facts->incidents[i];
		if (!is_fatal_of(facts, incident, device))
			continue;
		*out = (struct fact_moment){ .kind = MOMENT_INCIDENT,
					.process = incident->process,
					.seq = incident->settled_seq,
					.time_ns = incident->time_ns,
					.incident = incident->id };
		return true;
	}
	return false;
}

/* The end of a process that is still running is now. */
static struct fact_moment end_of(const struct facts *facts, uint32_t process)
{
	uint64_t seq = seq_at_end(facts->run->processes[process].reader);
	bool running = end_may_run(facts->processes[process].end);
	return (struct fact_moment){ .kind = running ? MOMENT_NOW : MOMENT_END,
				.process = process,
				.seq = seq,
				.time_ns = facts->processes[process].end_ns };
}

/* Address ranges and pools are no memory, and framework blocks are inside other blocks. */
static uint64_t live_device_bytes(const struct facts *facts, uint32_t process, uint64_t seq,
				  unsigned ordinal)
{
	struct live_sums sums = run_sums_counted(&facts->run->processes[process], seq);
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
	const struct facts *facts;
	uint32_t device;
	uint64_t *bytes; /* by process; CUF_UNKNOWN: it does not use the device */
};

static void measure_at_end(void *context, size_t i)
{
	const struct held_at_end *held = context;
	const struct facts *facts = held->facts;
	unsigned ordinal = CUF_DEVICE_NONE;
	uint32_t process = (uint32_t)i;

	if (held->device != FACT_NONE)
		ordinal = fact_ordinal_of(&facts->processes[process], held->device);
	held->bytes[i] = CUF_UNKNOWN;
	if (held->device != FACT_NONE && ordinal == CUF_DEVICE_NONE)
		return;
	held->bytes[i] = live_device_bytes(facts, process, end_of(facts, process).seq, ordinal);
	run_rest(facts->run, &facts->run->processes[i]);
}

/* The process that held most of a device at its own end; the first of those that held nothing. */
static uint32_t largest_at_end(const struct facts *facts, uint32_t device)
{
	struct held_at_end held = { facts, device, NULL };
	uint32_t largest = FACT_NONE;

	if (facts->devices[device].member_count == 1)
		return facts->devices[device].members[0].process;
	held.bytes = xalloc_zeroed(facts->run->count, sizeof *held.bytes);
	parallel_each(facts->run->count, facts->run->threads, measure_at_end, &held);
	for (uint32_t p = 0; p < facts->run->count; p++)
		if (held.bytes[p] != CUF_UNKNOWN &&
		    (largest == FACT_NONE || held.bytes[p] > held.bytes[largest]))
			largest = p;
	free(held.bytes);
	return largest == FACT_NONE ? 0 : largest;
}

/* Whom the report is about when no request was fatal. */
static uint32_t process_to_explain(const struct facts *facts)
{
	struct held_at_end held = { facts, FACT_NONE, NULL };
	uint32_t process;

	if (facts->run->count == 1)
		return 0;
	held.bytes = xalloc_zeroed(facts->run->count, sizeof *held.bytes);
	parallel_each(facts->run->count, facts->run->threads, measure_at_end, &held);
	process = main_process(facts, held.bytes);
	free(held.bytes);
	return process;
}

/* A moment given by time: --at TIME, or a peak. */
static struct fact_moment at_time(const struct facts *facts, uint32_t process, uint64_t time_ns)
{
	const struct run_process *recorded = &facts->run->processes[process];
	return (struct fact_moment){ .kind = MOMENT_AT,
				.process = process,
				.time_ns = time_ns,
				.seq = seq_at_time(recorded->events,
						   monotonic(&recorded->reader->header, time_ns)) };
}

/* A moment that was requested but does not exist is replaced by the automatic one. */
struct fact_moment moment_asked(const struct facts *facts, const struct facts_options *options)
{
	struct fact_moment moment;
	uint64_t start_ns = facts->processes[0].start_ns;
	switch (options->at) {
	case FACTS_AT_NOW: moment = end_of(facts, process_to_explain(facts));
		moment.kind = MOMENT_NOW;
		moment.seq = CUF_UNKNOWN;
		return moment;
	case FACTS_AT_INCIDENT: for (size_t i = 0; i < facts->incident_count; i++) {
			const struct fact_incident *incident = &facts->incidents[i];
			if (incident->id == options->at_value)
				return (struct fact_moment){ .kind = MOMENT_INCIDENT,
							.process = incident->process,
							.seq = incident->settled_seq,
							.time_ns = incident->time_ns,
							.incident = incident->id };
		}
		break;
	case FACTS_AT_TIME:
		if (!__builtin_add_overflow(start_ns, options->at_value, &start_ns))
			return at_time(facts, process_to_explain(facts), start_ns);
		break;
	default: break;
	}
	if (options->at != FACTS_AT_END && last_fatal(facts, FACT_NONE, &moment))
		return moment;
	return end_of(facts, process_to_explain(facts));
}

/* Whoever is in the report's moment is in the peaks and charts, too, until then. */
static uint64_t gone_at(const struct facts *facts, uint32_t process)
{
	const struct fact_process *fact = &facts->processes[process];
	uint64_t seq;

	if (end_may_run(fact->end))
		return CUF_UNKNOWN;
	if (!is_known(facts->moment.time_ns) || !process_at(facts, process, &facts->moment, &seq))
		return fact->end_ns;
	return most_of(fact->end_ns, facts->moment.time_ns);
}

/* The moment of the run in a process; its own end where it was not there then. */
static uint64_t seq_at_moment(const struct facts *facts, uint32_t process)
{
	const struct cuf_header *header = &facts->run->processes[process].reader->header;
	uint64_t seq;

	if (process_at(facts, process, &facts->moment, &seq))
		return seq;
	if (!header->end_kind || !header->end_seq)
		return CUF_UNKNOWN;
	return header->end_seq;
}

void build_moment(struct facts *facts, const struct facts_options *options)
{
	facts->moment = moment_asked(facts, options);
	facts->focus = facts->moment.process;
	for (uint32_t p = 0; p < facts->process_count; p++) {
		facts->processes[p].moment_seq = seq_at_moment(facts, p);
		facts->processes[p].gone_ns = gone_at(facts, p);
	}
}

/* A device's own moment: its own last fatal incident, else the run's if anybody who uses it was
 * there, else its own end. */
static struct fact_moment moment_of_device(const struct facts *facts,
					   const struct facts_options *options,
					   const struct fact_moment *of_run, uint32_t index)
{
	const struct fact_device *device = &facts->devices[index];
	struct fact_moment moment = *of_run;
	uint64_t seq;
	if (options->at == FACTS_AT_PEAK && is_known(device->peak_ns))
		return at_time(facts, device->peak_process, device->peak_ns);
	if (options->at == FACTS_AT_AUTO && last_fatal(facts, index, &moment))
		return moment;
	if (moment.kind == MOMENT_INCIDENT || moment.kind == MOMENT_AT)
		for (size_t i = 0; i < device->member_count; i++)
			if (process_at(facts, device->members[i].process, &moment, &seq))
				return moment;
	if (options->at == FACTS_AT_NOW)
		return moment;
	return end_of(facts, largest_at_end(facts, index));
}

const struct fact_moment *device_moments(const struct facts *facts,
					 const struct facts_options *options,
					 const struct fact_moment *of_run)
{
	struct fact_moment *moments = arena_zeroed(facts->arena, facts->device_count,
						   sizeof *moments);

	for (uint32_t i = 0; i < facts->device_count; i++)
		moments[i] = moment_of_device(facts, options, of_run, i);
	return moments;
}

/* The recorder put the clock of the host's events right at this instant, so they can be ordered
 * to the nanosecond. */
static bool is_marked(const struct facts *facts, const struct fact_moment *moment)
{
	return moment->kind == MOMENT_INCIDENT &&
	       facts->incidents[moment->incident - 1].kind == CUF_KIND_HOST;
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
static uint64_t host_time_of(const struct facts *facts, uint32_t process)
{
	const struct reader *reader = facts->run->processes[process].reader;
	const struct fact_moment *moment = &facts->moment;
	uint64_t seq;
	if (moment->kind == MOMENT_NOW || !process_at(facts, process, moment, &seq))
		return CUF_UNKNOWN;
	if (moment->kind == MOMENT_END)
		return work_end_ns(reader);
	/* host events are ordered by a coarse clock: bring back only what is clearly earlier */
	if (is_marked(facts, moment) ||
	    moment->time_ns + 10 * HOST_CLOCK_NS < facts->processes[process].end_ns)
		return moment->time_ns - reader->header.start_realtime_ns + reader->header.start_ns;
	return work_end_ns(reader);
}

/* Each process has its own peak of host memory, as each device has. */
static struct heap_moment host_peak_of(const struct facts *facts, uint32_t process)
{
	const struct run_process *from = &facts->run->processes[process];
	struct host_means means = host_means_of(from->reader, &from->meta);
	struct cuf_host_peak *note = arena_zeroed(facts->arena, 1, sizeof *note);
	struct heap_moment peak;

	if (peak_note_or_events(from->reader, &means, note, &peak))
		return peak;
	return (struct heap_moment){ .time_ns = CUF_UNKNOWN, .events = CUF_UNKNOWN };
}

static struct host_moment host_moment_of(const struct facts *facts,
					 const struct facts_options *options, uint32_t process)
{
	struct host_moment moment = { .is_peak = options->at == FACTS_AT_PEAK,
				      .failed_ns = CUF_UNKNOWN };

	if (moment.is_peak) {
		moment.at = host_peak_of(facts, process);
		return moment;
	}
	moment.at = (struct heap_moment){ .time_ns = host_time_of(facts, process),
					  .events = CUF_UNKNOWN };
	if (facts->moment.process == process && is_marked(facts, &facts->moment))
		moment.failed_ns = facts->moment.time_ns;
	return moment;
}

/* The peak of a device is a time; each process that uses it stood somewhere then. */
static void fill_live(const struct facts *facts, const struct moments *moments, uint32_t index)
{
	struct fact_process *process = &facts->processes[index];
	bool is_peak = moments->of_host[index].is_peak;

	process->live.host_ns = moments->of_host[index].at.time_ns;
	process->live.host_events = moments->of_host[index].at.events;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		uint32_t device = process->device_of[d];
		uint64_t seq = process->moment_seq;

		if (is_peak && device != FACT_NONE &&
		    !process_at(facts, index, &moments->of_device[device], &seq))
			seq = 0;
		process->live.device_seq[d] = seq;
	}
}

struct moments build_moments(struct facts *facts, const struct facts_options *options)
{
	struct host_moment *of_host = arena_zeroed(facts->arena, facts->process_count,
						   sizeof *of_host);
	struct moments moments = { device_moments(facts, options, &facts->moment), of_host };

	for (uint32_t p = 0; p < facts->process_count; p++) {
		of_host[p] = host_moment_of(facts, options, p);
		fill_live(facts, &moments, p);
	}
	return moments;
}

/* ---- what will be asked for ---- */

void seqs_add(struct seqs *seqs, uint64_t seq)
{
	if (!is_known(seq))
		return;
	xalloc_grow(&seqs->items, seqs->count, &seqs->room, sizeof *seqs->items);
	seqs->items[seqs->count++] = seq;
}

static void expect_moment(struct seqs *seqs, const struct facts *facts, uint32_t process,
			  const struct fact_moment *moment)
{
	uint64_t seq;

	if (process_at(facts, process, moment, &seq))
		seqs_add(seqs, seq);
}

/* Older incidents have only the figures that the recorder measured. */
enum { VIEWS_MAX = 16 };

/* Fatal incidents explain the end of a process, so twice as many of them have a view. */
bool incident_has_view(const struct fact_incident *incident, size_t views)
{
	return views < (incident->outcome == OUTCOME_FATAL ? 2 * VIEWS_MAX : VIEWS_MAX);
}

/* The incidents that have a view, and the one that ended the process. */
static void expect_incidents(struct seqs *seqs, const struct facts *facts, uint32_t process)
{
	const struct fact_process *fact = &facts->processes[process];
	size_t views = 0;

	for (size_t i = facts->incident_count; i--;) {
		const struct fact_incident *incident = &facts->incidents[i];
		struct fact_moment moment = { .process = incident->process,
					 .seq = incident->settled_seq,
					 .time_ns = incident->time_ns };
		bool is_viewed = incident_has_view(incident, views);

		views += is_viewed;
		if (is_viewed && incident->device != FACT_NONE &&
		    fact_ordinal_of(fact, incident->device) != CUF_DEVICE_NONE)
			expect_moment(seqs, facts, process, &moment);
		if (incident->process == process && is_viewed)
			seqs_add(seqs, incident->seq);
	}
}

void moments_expected(const struct facts *facts, const struct facts_options *options,
		      const struct moments *moments, uint32_t process, struct seqs *seqs)
{
	const struct fact_process *fact = &facts->processes[process];
	uint64_t live[CUF_DEVICES_MAX + 1];
	size_t count = fact_live_seqs(fact, live);

	for (size_t i = 0; i < count; i++)
		seqs_add(seqs, live[i]);
	expect_incidents(seqs, facts, process);
	seqs_add(seqs, seq_at_end(facts->run->processes[process].reader));
	for (uint32_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *device = &facts->devices[i];
		struct fact_moment moment;

		if (fact_ordinal_of(fact, i) == CUF_DEVICE_NONE)
			continue;
		expect_moment(seqs, facts, process, &moments->of_device[i]);
		if (!options->all_peaks || !is_known(device->peak_ns))
			continue;
		moment = at_time(facts, device->peak_process, device->peak_ns);
		expect_moment(seqs, facts, process, &moment);
	}
	if (seqs->count)
		qsort(seqs->items, seqs->count, sizeof *seqs->items, compare_uint64);
}
