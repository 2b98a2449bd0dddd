/* SPDX-License-Identifier: Apache-2.0 */
/* Device and framework events, merged by sequence number. */
#include "analysis/recording/events.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/recording/segments.h"
#include "analysis/base/xalloc.h"

enum { RINGS = 2, DROP_EVERY = 1 << 20 }; /* events: 64 MiB of pages */

struct cursor {
	struct events *events;    /* of its ring */
	const struct lane_segment *segments; /* of its lane */
	size_t segment, end;
	uint32_t record, used;
	uint32_t place;           /* of the record that the cursor stands on */
	const uint8_t *records;
};

struct merge {
	struct lanes lanes[RINGS];
	struct cursor *cursors;
	struct lane_heap heap;
	uint64_t last_seq;        /* of both rings */
	uint64_t last_gap;        /* every event after it is here, of both rings */
	bool sorted;
};

static void next_segment(struct cursor *c)
{
	struct cuf_segment s;
	c->record = c->used = 0;
	if (reader_segment(c->events->reader, c->events->ring, c->segments[c->segment].index, &s, &c->records))
		c->used = s.used;
}

/* Moves to the next committed event of the lane; 0: the lane is at its end. */
static uint64_t advance(struct cursor *c)
{
	for (;;) {
		while (c->record < c->used) {
			uint32_t at = c->record++;
			uint64_t seq;
			memcpy(&seq, c->records + (size_t)at * c->events->stride, sizeof seq);
			c->place = c->segments[c->segment].index * c->events->per_segment + at;
			if (seq)
				return seq;
		}
		if (++c->segment >= c->end)
			return 0;
		next_segment(c);
	}
}

static void start(struct merge *m, struct events *rings[RINGS])
{
	size_t count = m->lanes[0].lane_count + m->lanes[1].lane_count, lane = 0;
	m->cursors = xalloc_zeroed(count, sizeof *m->cursors);
	lane_heap_init(&m->heap, count);
	for (unsigned ring = 0; ring < RINGS; ring++)
		for (size_t i = 0; i < m->lanes[ring].lane_count; i++, lane++) {
			struct cursor *c = &m->cursors[lane];
			uint64_t seq;
			*c = (struct cursor){ .events = rings[ring], .segments = m->lanes[ring].segments + m->lanes[ring].lanes[i].first,
				.end = m->lanes[ring].lanes[i].count };
			next_segment(c);
			seq = advance(c);
			if (seq)
				lane_heap_push(&m->heap, (uint32_t)lane, seq);
		}
}

static void append(struct merge *m, const struct cursor *c, uint64_t seq)
{
	struct events *e = c->events;
	uint8_t op = c->records[(size_t)(c->record - 1) * e->stride + offsetof(struct cuf_event, op)];
	if (op == CUF_OP_ROLE) {
		xalloc_grow(&e->roles, e->role_count, &e->role_room, sizeof *e->roles);
		e->roles[e->role_count++] = (uint32_t)e->count;
	}
	xalloc_grow(&e->order, e->count, &e->room, sizeof *e->order);
	e->order[e->count++] = c->place;
	m->sorted &= seq >= m->last_seq;
	if (seq > m->last_seq + 1 || !m->last_seq)
		m->last_gap = seq - 1;
	if (!e->first_seq)
		e->first_seq = seq;
	m->last_seq = e->last_seq = seq;
	events_passed(e, e->count);
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
	if (e->count)
		qsort(all, e->count, sizeof *all, by_seq);
	for (size_t i = 0; i < e->count; i++)
		e->order[i] = all[i].place;
	e->role_count = 0; /* their places have moved */
	e->first_seq = e->count ? all[0].seq : 0;
	e->last_seq = e->complete_since = e->count ? all[e->count - 1].seq : 0;
	free(all);
}

static struct events *ring_new(const struct reader *reader, enum cuf_section_id ring)
{
	struct events *e = xalloc_zeroed(1, sizeof *e);
	e->reader = reader;
	e->ring = ring;
	if (!reader->sections[ring].bytes)
		return e;
	e->stride = reader->sections[ring].stride;
	e->segment_bytes = reader_segment_bytes(reader, ring);
	e->per_segment = (uint32_t)((e->segment_bytes - sizeof(struct cuf_segment)) / e->stride);
	return e;
}

/*
 * A number without its event is one that left its ring, or that found no room in it, or a call that was never finished.
 * Which ring it belonged to cannot be told, so a gap counts for each ring that ever lost an event, and for it alone.
 */
static void settle(const struct merge *m, struct events *e)
{
	const struct cuf_header *h = &e->reader->header;
	bool device = e->ring == CUF_SEC_RING;
	bool lost = device ? h->overwritten || h->lost[CUF_LOST_RING] : h->framework_overwritten || h->lost[CUF_LOST_FRAMEWORK_RING];
	if (!m->sorted)
		sort_again(e);
	else
		e->complete_since = lost || !e->reader->complete ? m->last_gap : 0;
	reader_drop(e->reader, e->ring);
}

struct events *events_new(const struct reader *reader)
{
	struct events *rings[RINGS] = { ring_new(reader, CUF_SEC_RING), ring_new(reader, CUF_SEC_FRAMEWORK_RING) };
	struct merge m = { .sorted = true };
	rings[0]->framework = rings[1];
	for (unsigned ring = 0; ring < RINGS; ring++)
		if (rings[ring]->stride)
			lanes_init(&m.lanes[ring], reader, rings[ring]->ring);
	start(&m, rings);
	while (m.heap.count) {
		uint32_t lane = m.heap.items[0];
		struct cursor *c = &m.cursors[lane];
		uint64_t seq;
		append(&m, c, m.heap.keys[lane]);
		seq = advance(c);
		lane_heap_settle(&m.heap, seq, !seq);
	}
	lane_heap_fini(&m.heap);
	free(m.cursors);
	for (unsigned ring = 0; ring < RINGS; ring++) {
		lanes_fini(&m.lanes[ring]);
		settle(&m, rings[ring]);
	}
	return rings[0];
}

void events_free(struct events *events)
{
	if (!events)
		return;
	events_free(events->framework);
	free(events->order);
	free(events->roles);
	free(events);
}

struct cuf_event events_get(const struct events *events, size_t i)
{
	uint32_t place = events->order[i];
	const uint8_t *segment = events->reader->sections[events->ring].at + place / events->per_segment * events->segment_bytes;
	struct cuf_event e;
	memcpy(&e, segment + sizeof(struct cuf_segment) + (uint64_t)(place % events->per_segment) * events->stride, sizeof e);
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

void events_passed(const struct events *events, size_t passed)
{
	if (passed % DROP_EVERY == DROP_EVERY - 1)
		reader_drop(events->reader, events->ring);
}

static void load(struct event_merge *m, unsigned ring)
{
	m->have[ring] = m->at[ring] < m->rings[ring]->count;
	if (m->have[ring])
		m->next[ring] = events_get(m->rings[ring], m->at[ring]++);
	events_passed(m->rings[ring], m->at[ring]);
}

void event_merge_begin(struct event_merge *merge, const struct events *events, uint64_t after_seq)
{
	*merge = (struct event_merge){ .rings = { events, events->framework } };
	for (unsigned ring = 0; ring < RINGS; ring++) {
		merge->at[ring] = after_seq ? events_after(merge->rings[ring], after_seq) : 0;
		load(merge, ring);
	}
}

bool event_merge_next(struct event_merge *merge, struct cuf_event *event)
{
	unsigned ring = merge->have[1] && (!merge->have[0] || merge->next[1].seq < merge->next[0].seq);
	if (!merge->have[ring])
		return false;
	*event = merge->next[ring];
	load(merge, ring);
	return true;
}
