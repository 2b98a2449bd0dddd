/* SPDX-License-Identifier: Apache-2.0 */
/* Device events, merged by sequence number. */
#include "analysis/model/events.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/model/segments.h"
#include "analysis/model/xalloc.h"

struct cursor {
	size_t segment;           /* in lanes.segments */
	size_t end;
	uint32_t record, used;
	uint32_t place;           /* of the record that the cursor stands on */
	const uint8_t *records;
};

struct merge {
	const struct reader *reader;
	struct lanes lanes;
	struct cursor *cursors;
	struct lane_heap heap;
	uint32_t per_segment, stride;
	size_t room;
	bool sorted;
};

/* Moves to the next committed event of the lane; 0: the lane is at its end. */
static uint64_t advance(struct merge *m, struct cursor *c)
{
	for (;;) {
		struct cuf_segment s;
		while (c->record < c->used) {
			uint32_t at = c->record++;
			uint64_t seq;
			memcpy(&seq, c->records + (size_t)at * m->stride, sizeof seq);
			c->place = m->lanes.segments[c->segment].index * m->per_segment + at;
			if (seq)
				return seq;
		}
		if (++c->segment >= c->end)
			return 0;
		c->record = c->used = 0;
		if (reader_segment(m->reader, CUF_SEC_RING, m->lanes.segments[c->segment].index, &s, &c->records))
			c->used = s.used;
	}
}

static void start(struct merge *m)
{
	m->cursors = xalloc_zeroed(m->lanes.lane_count, sizeof *m->cursors);
	lane_heap_init(&m->heap, m->lanes.lane_count);
	for (size_t i = 0; i < m->lanes.lane_count; i++) {
		struct cursor *c = &m->cursors[i];
		struct cuf_segment s;
		uint64_t seq;
		c->segment = m->lanes.lanes[i].first;
		c->end = c->segment + m->lanes.lanes[i].count;
		if (reader_segment(m->reader, CUF_SEC_RING, m->lanes.segments[c->segment].index, &s, &c->records))
			c->used = s.used;
		seq = advance(m, c);
		if (seq)
			lane_heap_push(&m->heap, (uint32_t)i, seq);
	}
}

static void append(struct events *e, struct merge *m, uint32_t place, uint64_t seq)
{
	xalloc_grow(&e->order, e->count, &m->room, sizeof *e->order);
	e->order[e->count++] = place;
	if (seq < e->last_seq)
		m->sorted = false;
	if (e->first_seq && seq > e->last_seq + 1)
		e->complete_since = seq - 1;
	if (!e->first_seq) {
		e->first_seq = seq;
		e->complete_since = seq - 1;
	}
	e->last_seq = seq;
}

struct placed { uint64_t seq; uint32_t place; };

static int by_seq(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* A sound writer's lanes ascend, so this is for damaged recordings alone. */
static void sort_again(struct events *e)
{
	struct placed *all = xalloc_zeroed(e->count, sizeof *all);
	for (size_t i = 0; i < e->count; i++)
		all[i] = (struct placed){ events_get(e, i).seq, e->order[i] };
	qsort(all, e->count, sizeof *all, by_seq);
	for (size_t i = 0; i < e->count; i++)
		e->order[i] = all[i].place;
	e->first_seq = all[0].seq;
	e->last_seq = e->complete_since = all[e->count - 1].seq;
	free(all);
}

struct events *events_new(const struct reader *reader)
{
	struct events *e = xalloc_zeroed(1, sizeof *e);
	struct merge m = { .reader = reader, .stride = reader->sections[CUF_SEC_RING].stride, .sorted = true };
	e->reader = reader;
	if (!reader->sections[CUF_SEC_RING].bytes)
		return e;
	m.per_segment = (uint32_t)((reader->header.device_segment_bytes - sizeof(struct cuf_segment)) / m.stride);
	lanes_init(&m.lanes, reader, CUF_SEC_RING);
	start(&m);
	while (m.heap.count) {
		uint32_t lane = m.heap.items[0];
		struct cursor *c = &m.cursors[lane];
		uint64_t seq;
		append(e, &m, c->place, m.heap.keys[lane]);
		seq = advance(&m, c);
		lane_heap_settle(&m.heap, seq, !seq);
	}
	if (!m.sorted)
		sort_again(e);
	else if (!reader->header.overwritten && !reader->header.lost[CUF_LOST_RING] && reader->complete)
		e->complete_since = 0; /* a number without its event is a call that was never finished */
	reader_drop(reader, CUF_SEC_RING);
	lane_heap_fini(&m.heap);
	free(m.cursors);
	lanes_fini(&m.lanes);
	return e;
}

void events_free(struct events *events)
{
	if (events)
		free(events->order);
	free(events);
}

struct cuf_event events_get(const struct events *events, size_t i)
{
	const struct reader_section *s = &events->reader->sections[CUF_SEC_RING];
	uint64_t bytes = events->reader->header.device_segment_bytes;
	uint32_t per_segment = (uint32_t)((bytes - sizeof(struct cuf_segment)) / s->stride), place = events->order[i];
	struct cuf_event e;
	memcpy(&e, s->at + place / per_segment * bytes + sizeof(struct cuf_segment) + (uint64_t)(place % per_segment) * s->stride, sizeof e);
	if (e.kind >= CUF_KIND_MAX)
		e.kind = CUF_KIND_NONE;
	return e;
}

size_t events_after(const struct events *events, uint64_t seq)
{
	size_t low = 0, high = events->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (events_get(events, middle).seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
