/* SPDX-License-Identifier: Apache-2.0 */
/* Which moments a picture shows exactly. */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/parts.h"

/* Of failed requests the first and the last ones. A row of a call site may change at every moment:
 * where there are many call sites there are fewer moments. */
enum { STRETCHES_MOST = 480, STRETCHES_LEAST = 16, INCIDENTS = 64, ENTRIES = 2 << 20,
	LOOK_BACK = 64 };

/* The times of the LOOK_BACK events of a ring before an index: failed requests follow each other
 * closely, and most of their events are those of the one before. */
struct looked_back { const struct events *ring; size_t end; uint64_t times_ns[LOOK_BACK]; };

struct list {
	struct timeline_moment *items;
	size_t count, room;
	const struct run *run;
	struct looked_back rings[2];
};

static uint64_t latest_ns(struct looked_back *looked, const struct events *ring, size_t end)
{
	size_t from = subtract_to_zero(end, LOOK_BACK), known = 0;
	uint64_t latest = 0;

	if (looked->ring == ring)
		known = looked->end;
	for (size_t i = from; i < end; i++) {
		uint64_t *time_ns = &looked->times_ns[i % LOOK_BACK];
		if (i >= known || i + LOOK_BACK < known)
			*time_ns = events_get(ring, i).time_ns;
		latest = most_of(latest, *time_ns);
	}
	looked->ring = ring;
	looked->end = end;
	return latest;
}

/*
 * When the last events up to this number happened; 0: none is left. A failed request has the time
 * at which it was made, and a number that it got when it had failed: others may lie between.
 */
static uint64_t time_of_seq(struct list *list, const struct run_process *process, uint64_t seq)
{
	const struct events *rings[] = { process->events, process->events->framework };
	const struct cuf_header *header = &process->reader->header;
	uint64_t last_ns = 0;

	for (unsigned i = 0; i < 2; i++)
		last_ns = most_of(last_ns, latest_ns(&list->rings[i], rings[i],
						     events_after(rings[i], seq)));
	if (!last_ns)
		return 0;
	return last_ns - header->start_ns + header->start_realtime_ns;
}

static void add_moment(struct list *list, const struct timeline_moment *moment)
{
	if (!is_known(moment->time_ns))
		return;
	xalloc_grow(&list->items, list->count, &list->room, sizeof *list->items);
	list->items[list->count] = *moment;
	/* what a failed request freed itself belongs to its moment, though it came later */
	if (is_known(moment->seq) && moment->process != FACT_NONE)
		list->items[list->count].time_ns =
			most_of(moment->time_ns,
				time_of_seq(list, &list->run->processes[moment->process],
					    moment->seq));
	list->count++;
}

static void add_time(struct list *list, uint64_t time_ns)
{
	add_moment(list, &(struct timeline_moment){ .kind = TIMELINE_SAMPLE, .time_ns = time_ns,
						    .seq = CUF_UNKNOWN, .process = FACT_NONE,
						    .incident = FACT_NONE });
}

/* device: FACT_NONE for host memory. */
static void add_peak(struct list *list, uint32_t device, uint64_t time_ns)
{
	add_moment(list, &(struct timeline_moment){ .kind = TIMELINE_PEAK, .time_ns = time_ns,
						    .seq = CUF_UNKNOWN, .process = FACT_NONE,
						    .incident = FACT_NONE, .peak_of = device });
}

static size_t stretches(const struct facts *facts, const struct run *run)
{
	uint64_t sites = 1;

	for (size_t i = 0; i < facts->process_count; i++)
		sites += least_of(run->processes[i].reader->header.stack_count, ENTRIES);
	return (size_t)most_of(STRETCHES_LEAST, least_of(STRETCHES_MOST, ENTRIES / 2 / sites));
}

/* The lowest and the highest moment of each stretch of the device that the report is about. Where
 * nothing happens, none is needed. */
static void add_extremes(struct list *list, const struct timeline_range *range, size_t count)
{
	uint64_t last = CUF_UNKNOWN;

	for (size_t i = 0; i < count; i++) {
		size_t from = i * TIMELINE_STRETCHES / count,
		       to = (i + 1) * TIMELINE_STRETCHES / count, low = from, high = from;
		for (size_t at = from; at < to; at++) {
			if (range->low[at] < range->low[low])
				low = at;
			if (range->high[at] > range->high[high])
				high = at;
		}
		if (range->low[low] == last && range->high[high] == last)
			continue;
		last = CUF_UNKNOWN;
		if (range->low[low] == range->high[high])
			last = range->low[low];
		add_time(list, range->low_ns[low]);
		if (range->high_ns[high] != range->low_ns[low])
			add_time(list, range->high_ns[high]);
	}
}

static void add_samples(struct list *list, const struct timeline *timeline,
			const struct facts *facts, size_t count)
{
	uint64_t span = timeline->end_ns - timeline->begin_ns;
	const struct timeline_range *range = NULL;

	for (size_t i = 0; i < facts->device_count; i++)
		if (!range && facts->devices[i].focus == facts->focus &&
		    timeline->ranges[2 * i].any)
			range = &timeline->ranges[2 * i];
	if (range)
		add_extremes(list, range, count);
	for (size_t i = 0; !range && i < count; i++)
		add_time(list,
			 timeline->begin_ns + (uint64_t)((double)span * (double)i / (double)count));
	add_time(list, timeline->begin_ns);
	add_time(list, timeline->end_ns);
}

static void add_incidents(struct list *list, const struct facts *facts)
{
	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *incident = &facts->incidents[i];
		if (i >= INCIDENTS / 2 && i + INCIDENTS / 2 < facts->incident_count)
			continue;
		add_moment(list, &(struct timeline_moment){ .kind = TIMELINE_INCIDENT,
							    .time_ns = incident->time_ns,
							    .seq = incident->settled_seq,
							    .process = incident->process,
							    .incident = (uint32_t)i });
	}
}

static enum timeline_moment_kind kind_of(const struct fact_moment *moment)
{
	switch (moment->kind) {
	case MOMENT_INCIDENT: return TIMELINE_INCIDENT;
	case MOMENT_AT: return TIMELINE_AT;
	default: return TIMELINE_END;
	}
}

/* The moment that the report shows, and those of its devices. */
static void add_report(struct list *list, const struct facts *facts,
		       const struct fact_moment *moment, bool is_device)
{
	struct timeline_moment made = { .kind = kind_of(moment), .time_ns = moment->time_ns,
					.seq = moment->seq, .process = moment->process,
					.incident = FACT_NONE,
					.is_report = !is_device, .is_device = is_device };

	if (moment->incident)
		made.incident = (uint32_t)(moment->incident - 1);
	/* the end of its work, before what an interpreter freed at exit */
	if (made.kind == TIMELINE_END && is_known(facts->processes[moment->process].host.at_ns))
		made.time_ns = facts->processes[moment->process].host.at_ns;
	if (!is_known(made.time_ns))
		made.time_ns = facts->processes[moment->process].end_ns;
	if (made.kind == TIMELINE_AT)
		made.seq = CUF_UNKNOWN;
	add_moment(list, &made);
}

/* The report's own moment comes after others of the same time, so that it includes what they do. */
static int by_moment_time(const void *a, const void *b)
{
	const struct timeline_moment *left = a, *right = b;

	if (left->time_ns != right->time_ns)
		return compare_numbers(left->time_ns, right->time_ns);
	if (left->is_report != right->is_report)
		return left->is_report - right->is_report;
	if (is_known(left->seq) != is_known(right->seq))
		return is_known(left->seq) - is_known(right->seq);
	return compare_numbers(left->seq, right->seq);
}

/* Two of one instant: the one with more to it stays. */
static bool is_same(const struct timeline_moment *a, const struct timeline_moment *b)
{
	return a->time_ns == b->time_ns &&
	       ((a->kind == TIMELINE_SAMPLE && !is_known(a->seq)) ||
		(a->process == b->process && a->seq == b->seq && a->kind == b->kind));
}

static void settle_moments(struct list *list)
{
	size_t kept = 0;

	qsort(list->items, list->count, sizeof *list->items, by_moment_time);
	for (size_t i = 0; i < list->count; i++) {
		bool device = false;
		if (kept && is_same(&list->items[kept - 1], &list->items[i]))
			device = list->items[--kept].is_device;
		list->items[kept] = list->items[i];
		list->items[kept++].is_device |= device;
	}
	list->count = kept;
}

void timeline_moments(struct timeline *timeline, const struct facts *facts, const struct run *run)
{
	struct list list = { .run = run };

	add_samples(&list, timeline, facts, stretches(facts, run));
	add_incidents(&list, facts);
	for (uint32_t i = 0; i < facts->device_count; i++) {
		add_peak(&list, i, facts->devices[i].peak_ns);
		add_report(&list, facts, &facts->devices[i].moment, true);
	}
	add_peak(&list, FACT_NONE, facts->processes[facts->focus].host.live_peak_ns);
	add_report(&list, facts, &facts->moment, false);
	settle_moments(&list);
	timeline->moments = list.items;
	timeline->moment_count = list.count;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].is_report)
			timeline->report = i;
}

bool moment_includes(const struct timeline_work *work, const struct timeline_moment *moment,
		     uint64_t seq, uint64_t realtime_ns)
{
	if (moment->is_report)
		return seq <= work->process->moment_seq;
	if (moment->process == work->number && is_known(moment->seq))
		return seq <= moment->seq;
	return realtime_ns <= moment->time_ns;
}
