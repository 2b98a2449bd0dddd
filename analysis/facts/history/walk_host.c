/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host events of one process: levels and lifetimes. A host stream only goes forward, so levels
 * begin at 0, and what was there before the first event is added at the end: it is what is live at
 * the end less all changes.
 */
#include "analysis/facts/history/parts.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/measure/heap.h"
#include "analysis/recording/host_weight.h"
#include "analysis/facts/history/back_walk.h"

/* Addresses whose lifetimes are followed at once; of more, every second, fourth ... is. */
enum { ADDRESSES = 1 << 20 };

struct lifetimes {
	struct timeline_ages *ages;
	struct hash_index births; /* address to ms since the first event, plus 1 */
	uint64_t begin_ns;
	unsigned shift;           /* one address in 2^shift is followed */
};

struct host_walk {
	struct timeline_work *work;
	struct lifetimes lifetimes;
	size_t at; /* moments that were passed */
	uint64_t place; /* of the event in the stream, from 0 */
	bool reported;
	uint64_t first_ns;
};

static bool is_followed(const struct lifetimes *lifetimes, uint64_t address)
{
	uint64_t hash = (address >> 3) * 0x9E3779B97F4A7C15ull;
	return !lifetimes->shift || !(hash >> (64 - lifetimes->shift));
}

/* A number is 0 when its block is free: no removal is needed. */
static void follow_birth(struct lifetimes *lifetimes, const struct host_event *event, int sign)
{
	uint64_t ms = (event->time_ns - lifetimes->begin_ns) / 1000000u, count;
	uint32_t born;

	if (!is_followed(lifetimes, event->addr))
		return;
	if (sign > 0) {
		*hash_index_place(&lifetimes->births, event->addr) =
			(uint32_t)least_of(ms + 1, UINT32_MAX);
		return;
	}
	born = hash_index_find(&lifetimes->births, event->addr);
	if (!born || born > ms + 1)
		return;
	count = host_weight_count(event->bytes, event->sample_mean_bytes) << lifetimes->shift;
	ages_add(lifetimes->ages, ages_of_ms(ms + 1 - born), event->bytes, count);
}

static void begin_lifetimes(struct host_walk *walk)
{
	struct timeline_work *work = walk->work;
	uint64_t events = reader_count(work->recorded->reader, CUF_SEC_HOST_RING) *
			  reader_segment_bytes(work->recorded->reader, CUF_SEC_HOST_RING) /
			  sizeof(struct cuf_host_event);

	walk->lifetimes.ages = &work->timeline->ages[work->number * TIMELINE_LAYERS +
						     TIMELINE_HOST];
	while (events >> walk->lifetimes.shift > 2 * ADDRESSES)
		walk->lifetimes.shift++;
	hash_index_init(&walk->lifetimes.births, 0);
}

static void note_report(struct host_walk *walk)
{
	struct levels *levels = &walk->work->host;

	for (size_t i = 0; i < levels->count; i++) {
		levels->rows[i].report_bytes = levels->rows[i].bytes;
		levels->rows[i].report_count = levels->rows[i].count;
	}
	walk->reported = true;
}

/* Events of one millisecond lie on both sides of a peak: the report's moment is one of places. */
static void pass_moments(struct host_walk *walk, uint64_t time_ns)
{
	const struct timeline *timeline = walk->work->timeline;
	const struct fact_live_moment *live = &walk->work->process->live;
	struct heap_moment report = { .time_ns = live->host_ns, .events = live->host_events };
	uint64_t realtime_ns = work_realtime(walk->work, time_ns);

	if (!walk->reported && heap_is_after(&report, walk->place, time_ns))
		note_report(walk);
	while (walk->at < timeline->moment_count &&
	       timeline->moments[walk->at].time_ns < realtime_ns)
		levels_pass_forward(&walk->work->host, (uint32_t)walk->at++);
}

static void count_event(struct host_walk *walk, uint32_t number, const struct host_event *event,
			int sign)
{
	struct levels *levels = &walk->work->host;
	uint64_t bytes = host_weight_bytes(event->bytes, event->sample_mean_bytes),
		 count = host_weight_count(event->bytes, event->sample_mean_bytes);
	struct level_row *row;

	levels_add(levels, number, sign * walk_bytes(bytes), sign * (int64_t)count);
	row = &levels->rows[number];
	row->is_drawn |= host_weight_is_drawn(event->bytes, event->sample_mean_bytes);
	walk->work->host_is_sampled |= event->sample_mean_bytes != 0;
	if (sign < 0) {
		row->free_count += count;
		return;
	}
	row->alloc_count += count;
	row->alloc_bytes += bytes;
	row->most_bytes = most_of(row->most_bytes, event->bytes);
	if (!row->least_bytes || event->bytes < row->least_bytes)
		row->least_bytes = event->bytes;
	row->last_ns = event->time_ns;
}

static void read_events(struct host_walk *walk)
{
	const struct reader *reader = walk->work->recorded->reader;
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;

	for (; host_stream_next(stream, &event); walk->place++) {
		int sign = host_event_sign(event.op);
		if (!walk->first_ns)
			walk->first_ns = walk->lifetimes.begin_ns = event.time_ns;
		if (!sign || !event.bytes)
			continue;
		pass_moments(walk, event.time_ns);
		count_event(walk, levels_row(&walk->work->host, CUF_KIND_HOST, CUF_DEVICE_NONE,
					     reader_call_site(reader, event.stack)),
			    &event, sign);
		follow_birth(&walk->lifetimes, &event, sign);
	}
	host_stream_free(stream);
}

/* What the rows had before the first event: the last column of a row's own changes is known. */
static void add_base(struct host_walk *walk)
{
	struct timeline_work *work = walk->work;
	struct levels *levels = &work->host;
	struct host_means means = host_means_of(work->recorded->reader, &work->recorded->meta);
	struct heap_totals totals;
	struct sites sites;
	int64_t *base_bytes, *base_count;

	sites_init(&sites);
	heap_read_end(work->recorded->reader, &means, &sites, &totals);
	work->host_is_sampled |= totals.estimated;
	for (size_t i = 0; i < sites.count; i++)
		levels_row(levels, CUF_KIND_HOST, CUF_DEVICE_NONE, sites.items[i].stack);
	base_bytes = xalloc_zeroed(levels->count, sizeof *base_bytes);
	base_count = xalloc_zeroed(levels->count, sizeof *base_count);
	for (size_t i = 0; i < sites.count; i++) {
		const struct site *site = &sites.items[i];
		uint32_t row = levels_row(levels, CUF_KIND_HOST, CUF_DEVICE_NONE, site->stack);
		base_bytes[row] = walk_bytes(site->live_bytes);
		base_count[row] = walk_bytes(site->live_count);
		levels->rows[row].is_drawn |= site->live_variance > 0;
		levels->rows[row].last_ns = most_of(levels->rows[row].last_ns,
						    is_known(site->last_ns) ? site->last_ns : 0);
	}
	sites_fini(&sites);
	for (size_t i = 0; i < levels->count; i++) {
		struct level_row *row = &levels->rows[i];
		base_bytes[i] -= row->bytes;
		base_count[i] -= row->count;
		row->peak_bytes += base_bytes[i];
		row->report_bytes += base_bytes[i];
		row->report_count += base_count[i];
		row->kept_bytes = base_bytes[i];
		row->kept_count = base_count[i];
	}
	for (size_t i = 0; i < levels->entry_count; i++) {
		struct level_entry *entry = &levels->entries[i];
		entry->bytes += base_bytes[entry->row];
		entry->count += base_count[entry->row];
	}
	free(base_bytes);
	free(base_count);
	levels_close(levels);
}

void timeline_walk_host(struct timeline_work *work)
{
	const struct cuf_header *header = &work->recorded->reader->header;
	struct host_walk walk = { .work = work };

	levels_init(&work->host);
	if (header->options_host_mode == CUF_HOST_OFF)
		return;
	begin_lifetimes(&walk);
	read_events(&walk);
	if (!walk.reported)
		note_report(&walk);
	while (walk.at < work->timeline->moment_count)
		levels_pass_forward(&work->host, (uint32_t)walk.at++);
	add_base(&walk);
	walk.lifetimes.ages->is_sampled = walk.lifetimes.shift || work->host_is_sampled;
	if (header->host_overwritten || header->lost[CUF_LOST_HOST_RING])
		work->timeline->processes[work->number].first_ns[TIMELINE_HOST] =
			work_realtime(work, walk.first_ns);
	hash_index_fini(&walk.lifetimes.births);
}
