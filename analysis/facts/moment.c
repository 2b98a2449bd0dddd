/* SPDX-License-Identifier: Apache-2.0 */
/* Which moment a report describes, and where each process stood then. */
#include "analysis/facts/build.h"

const char *const moment_names[MOMENT_MAX] = { "incident", "end", "at", "now" };

#define LINGER_NS 1000000000ull /* a killed process is there a little longer than its last record */

static uint64_t monotonic(const struct cuf_header *h, uint64_t realtime_ns) { return realtime_ns - h->start_realtime_ns + h->start_ns; }

/* Before exit handlers, and before an interpreter that shut down gave everything back. */
static uint64_t end_seq(const struct reader *r)
{
	if (!r->header.end_kind || !r->header.end_seq)
		return CUF_UNKNOWN;
	return r->header.work_end_ns && r->header.work_end_seq < r->header.end_seq ? r->header.work_end_seq : r->header.end_seq;
}

bool process_at(const struct build *build, uint32_t process, const struct moment *moment, uint64_t *seq)
{
	const struct run_process *p = &build->run->processes[process];
	const struct fact_process *fact = &build->facts->processes[process];
	uint64_t end = end_seq(p->reader), gone_ns = fact->end_ns + (fact->end == END_RUNNING || end != CUF_UNKNOWN ? 0 : LINGER_NS);
	*seq = moment->seq;
	if (process == moment->process)
		return true;
	if (moment->kind == MOMENT_NOW) /* what has ended holds nothing beside what runs */
		return end == CUF_UNKNOWN || build->facts->processes[moment->process].end != END_RUNNING;
	if (moment->time_ns < fact->start_ns || (moment->time_ns > gone_ns && fact->end != END_RUNNING))
		return false;
	*seq = seq_at_time(p->events, monotonic(&p->reader->header, moment->time_ns));
	if (end != CUF_UNKNOWN && *seq > end)
		*seq = end;
	return true;
}

/* The last fatal incident; of one device, or the one of the process that failed first (FACT_NONE). */
static bool last_fatal(const struct build *b, uint32_t device, struct moment *out)
{
	for (size_t i = b->facts->incident_count; i--;) {
		const struct fact_incident *f = &b->facts->incidents[i];
		if (device == FACT_NONE ? f->id != b->facts->fatal_incident : f->outcome != OUTCOME_FATAL || f->device != device)
			continue;
		*out = (struct moment){ .kind = MOMENT_INCIDENT, .process = f->process, .seq = f->settled_seq, .time_ns = f->time_ns, .incident_id = f->id };
		return true;
	}
	return false;
}

static struct moment end_of(const struct build *b, uint32_t process)
{
	uint64_t seq = end_seq(b->run->processes[process].reader);
	bool running = b->facts->processes[process].end == END_RUNNING;
	return (struct moment){ .kind = running ? MOMENT_NOW : MOMENT_END, .process = process, .seq = seq,
		.time_ns = b->facts->processes[process].end_ns };
}

static uint64_t live_device_bytes(struct build *b, uint32_t process, uint64_t seq, unsigned ordinal)
{
	bool exact;
	const struct liveset *live = run_live(&b->run->processes[process], seq, &exact);
	uint64_t bytes = 0;
	size_t at = 0;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if ((ordinal == CUF_DEVICE_NONE || block->device == ordinal) && block->kind != CUF_KIND_RESERVATION && block->kind != CUF_KIND_MAPPING &&
		    block->kind != CUF_KIND_POOL && block->kind != CUF_KIND_FRAMEWORK && block->bytes < (uint64_t)1 << CUF_KEY_SHIFT)
			bytes += block->bytes;
	return bytes;
}

/* Of processes that hold nothing of a device, whom the report is about: who was killed for memory, then who is not merely an
 * image that exec replaced. */
static unsigned interest(const struct fact_process *p) { return p->end == END_OOM_KILLED ? 2 : p->end != END_EXEC; }

/* The process that held most at its own end; of those that hold nothing, the first of the most interest. */
static uint32_t largest_at_end(struct build *b, uint32_t device)
{
	uint32_t largest = 0;
	uint64_t most = 0;
	bool any = false;
	for (uint32_t p = 0; p < b->run->count; p++) {
		unsigned ordinal = device == FACT_NONE ? CUF_DEVICE_NONE : ordinal_in(b, device, p);
		uint64_t bytes;
		if (device != FACT_NONE && ordinal == CUF_DEVICE_NONE)
			continue;
		bytes = live_device_bytes(b, p, end_of(b, p).seq, ordinal);
		if (!any || bytes > most || (!bytes && !most && interest(&b->facts->processes[p]) > interest(&b->facts->processes[largest]))) {
			largest = p;
			most = bytes;
			any = true;
		}
	}
	return largest;
}

/* The member of a device that used it most, ever. */
static uint32_t busiest(const struct build *b, uint32_t device)
{
	const struct device_group *g = &b->groups[device];
	uint32_t best = g->members[0].process;
	uint64_t most = 0;
	for (size_t i = 0; i < g->count; i++) {
		const struct cuf_device *d = reader_at(b->run->processes[g->members[i].process].reader, CUF_SEC_DEVICES, g->members[i].ordinal);
		if (d && d->peak_bytes > most) {
			most = d->peak_bytes;
			best = g->members[i].process;
		}
	}
	return best;
}

static struct moment at_time(const struct build *b, uint32_t process, uint64_t time_ns)
{
	const struct run_process *p = &b->run->processes[process];
	return (struct moment){ .kind = MOMENT_AT, .process = process, .time_ns = time_ns,
		.seq = seq_at_time(p->events, monotonic(&p->reader->header, time_ns)) };
}

static struct moment asked_moment(struct build *b)
{
	struct moment m;
	uint64_t start_ns = b->facts->processes[0].start_ns;
	switch (b->options.at) {
	case FACTS_AT_NOW:
		m = end_of(b, largest_at_end(b, FACT_NONE));
		m.kind = MOMENT_NOW;
		m.seq = CUF_UNKNOWN;
		return m;
	case FACTS_AT_INCIDENT:
		for (size_t i = 0; i < b->facts->incident_count; i++) {
			const struct fact_incident *f = &b->facts->incidents[i];
			if (f->id == b->options.at_value)
				return (struct moment){ .kind = MOMENT_INCIDENT, .process = f->process, .seq = f->settled_seq, .time_ns = f->time_ns, .incident_id = f->id };
		}
		break;
	case FACTS_AT_TIME:
		if (!__builtin_add_overflow(start_ns, b->options.at_value, &start_ns))
			return at_time(b, largest_at_end(b, FACT_NONE), start_ns);
		break;
	default: break;
	}
	if (last_fatal(b, FACT_NONE, &m))
		return m;
	return end_of(b, largest_at_end(b, FACT_NONE));
}

void build_moment(struct build *build)
{
	build->moment = asked_moment(build);
	build->facts->focus = build->moment.process;
}

/* A device's own moment: its own last fatal incident, else the run's if anybody who uses it was there, else its own end. */
struct moment moment_of_device(struct build *build, uint32_t device)
{
	const struct device_group *g = &build->groups[device];
	struct moment m = build->moment;
	uint64_t seq;
	if (build->options.at == FACTS_AT_PEAK) {
		uint32_t p = busiest(build, device);
		const struct run_process *from = &build->run->processes[p];
		const struct cuf_device *d = reader_at(from->reader, CUF_SEC_DEVICES, ordinal_in(build, device, p));
		if (d && d->peak_ns)
			return at_time(build, p, reader_realtime(from->reader, d->peak_ns));
	}
	if (build->options.at == FACTS_AT_AUTO && last_fatal(build, device, &m))
		return m;
	if (m.kind == MOMENT_INCIDENT || m.kind == MOMENT_AT)
		for (size_t i = 0; i < g->count; i++)
			if (process_at(build, g->members[i].process, &m, &seq))
				return m;
	if (build->options.at == FACTS_AT_NOW)
		return m;
	return end_of(build, largest_at_end(build, device));
}
