/* SPDX-License-Identifier: Apache-2.0 */
/* The device and framework rings, merged by sequence number. Each thread wrote segments of its own,
 * a lane; a heap picks the lane with the lowest number next. */
#include "analysis/recording/events.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/recording/segments.h"
#include "analysis/base/xalloc.h"

enum { RINGS = 2, DROP_EVERY = 1 << 18 }; /* events, 16 MiB of pages */

struct cursor {
	struct events *events;    /* of its ring */
	const struct lane_segment *segments; /* of its lane */
	size_t segment, end;
	uint32_t record, used;
	uint32_t place;           /* of the record at the cursor, as in struct events */
	uint32_t first_place;     /* of the segment */
	const uint8_t *records;
};

struct merge {
	struct lanes lanes[RINGS];
	struct cursor *cursors;
	struct lane_heap heap;
	uint64_t last_seq;        /* of both rings */
	uint64_t last_gap;        /* every event of both rings after this one is here */
	bool sorted;
	const struct events_listener *listener;
};

/* An unreadable segment counts as empty, so the lane goes on with the next one. */
static void next_segment(struct cursor *cursor)
{
	struct cuf_segment segment;
	cursor->record = cursor->used = 0;
	if (!reader_segment(cursor->events->reader, cursor->events->ring,
			    cursor->segments[cursor->segment].index, &segment, &cursor->records))
		return;
	cursor->used = segment.used;
	cursor->first_place = (uint32_t)((uint64_t)(cursor->records - cursor->events->at) /
					 EVENTS_UNIT);
}

/* Moves to the next committed event of the lane and returns its number; 0: the end of the lane. */
static uint64_t advance(struct cursor *cursor)
{
	for (;;) {
		while (cursor->record < cursor->used) {
			uint32_t at = cursor->record++;
			uint64_t seq;
			memcpy(&seq, cursor->records + (size_t)at * cursor->events->stride,
			       sizeof seq);
			cursor->place = cursor->first_place +
					at * (cursor->events->stride / EVENTS_UNIT);
			if (seq)
				return seq;
		}
		if (++cursor->segment >= cursor->end)
			return 0;
		next_segment(cursor);
	}
}

/* One cursor for each lane of both rings. A lane without events is not in the heap. */
static void start(struct merge *merge, struct events *rings[RINGS])
{
	size_t count = merge->lanes[0].lane_count + merge->lanes[1].lane_count, lane = 0;
	merge->cursors = xalloc_zeroed(count, sizeof *merge->cursors);
	lane_heap_init(&merge->heap, count);
	for (unsigned ring = 0; ring < RINGS; ring++)
		for (size_t i = 0; i < merge->lanes[ring].lane_count; i++, lane++) {
			struct cursor *cursor = &merge->cursors[lane];
			uint64_t seq;
			*cursor = (struct cursor){ .events = rings[ring],
						   .segments = merge->lanes[ring].segments +
							       merge->lanes[ring].lanes[i].first,
						   .end = merge->lanes[ring].lanes[i].count };
			next_segment(cursor);
			seq = advance(cursor);
			if (seq)
				lane_heap_push(&merge->heap, (uint32_t)lane, seq);
		}
}

/* The event is the last one so far. */
static void note_time(struct events *events, const uint8_t *record)
{
	size_t block = events->count / EVENTS_BLOCK;
	uint64_t time_ns;

	memcpy(&time_ns, record + offsetof(struct cuf_event, time_ns), sizeof time_ns);
	if (events->count % EVENTS_BLOCK) {
		events->earliest_ns[block] = least_of(events->earliest_ns[block], time_ns);
		return;
	}
	xalloc_grow(&events->earliest_ns, block, &events->block_room,
		    sizeof *events->earliest_ns);
	events->earliest_ns[block] = time_ns;
}

static void list_event(struct event_list *list, size_t index)
{
	xalloc_grow(&list->items, list->count, &list->room, sizeof *list->items);
	list->items[list->count++] = (uint32_t)index;
}

/* The event is the next one. Of what was allocated before the first event only the age is known. */
static void note_free(struct events *events, const struct cuf_event *event)
{
	if (!events->count)
		events->first_ns = event->time_ns;
	if (event->op != CUF_OP_FREE)
		return;
	events->last_free_seq = event->seq;
	if (event->extra > (event->time_ns - events->first_ns) / 1000000)
		list_event(&events->old, events->count);
}

static struct cuf_event event_of(const uint8_t *record)
{
	struct cuf_event event;

	memcpy(&event, record, sizeof event);
	if (event.kind >= CUF_KIND_MAX)
		event.kind = CUF_KIND_NONE;
	return event;
}

/* Appends the event at the cursor to the index of its ring, and notes gaps in the numbers. */
static void append(struct merge *merge, const struct cursor *cursor, uint64_t seq)
{
	struct events *events = cursor->events;
	const uint8_t *record = cursor->records + (size_t)(cursor->record - 1) * events->stride;
	const struct cuf_event event = event_of(record);

	events->phase_count += event.op == CUF_OP_PHASE;
	note_free(events, &event);
	note_time(events, record);
	xalloc_grow(&events->order, events->count, &events->room, sizeof *events->order);
	events->order[events->count++] = cursor->place;
	merge->sorted &= seq >= merge->last_seq;
	if (seq > merge->last_seq + 1 || !merge->last_seq)
		merge->last_gap = seq - 1;
	if (!events->first_seq)
		events->first_seq = seq;
	merge->last_seq = events->last_seq = seq;
	if (merge->listener && merge->listener->hear)
		merge->listener->hear(merge->listener->state, &event,
				      events->ring == CUF_SEC_FRAMEWORK_RING);
	events_passed(events, events->count);
}

struct placed { uint64_t seq; uint32_t place; };

static int by_seq(const void *a, const void *b)
{
	const struct placed *left = a, *right = b;
	if (left->seq != right->seq)
		return compare_numbers(left->seq, right->seq);
	return compare_numbers(left->place, right->place);
}

/* Lanes of a sound writer ascend, so this is for damaged recordings only. */
static void sort_again(struct events *events)
{
	struct placed *all = xalloc_zeroed(events->count, sizeof *all);
	for (size_t i = 0; i < events->count; i++)
		all[i] = (struct placed){ events_get(events, i).seq, events->order[i] };
	if (events->count)
		qsort(all, events->count, sizeof *all, by_seq);
	events->old.count = 0; /* their indices have changed */
	for (size_t count = events->count, i = events->count = 0; i < count; i++) {
		const uint8_t *record = events->at + (uint64_t)all[i].place * EVENTS_UNIT;
		const struct cuf_event event = event_of(record);

		events->order[events->count] = all[i].place;
		note_free(events, &event);
		note_time(events, record);
		events->count++;
	}
	events->first_seq = events->count ? all[0].seq : 0;
	events->last_seq = events->complete_since = events->count ? all[events->count - 1].seq : 0;
	free(all);
}

/* A recording without this ring has an empty list. */
static struct events *ring_new(const struct reader *reader, enum cuf_section_id ring)
{
	struct events *events = xalloc_zeroed(1, sizeof *events);
	events->reader = reader;
	events->ring = ring;
	if (!reader->sections[ring].bytes)
		return events;
	events->stride = reader->sections[ring].stride;
	events->at = reader->sections[ring].at;
	return events;
}

/*
 * A missing number is an event that was overwritten, that was dropped because the ring was full,
 * or a call that never finished. Which ring it belonged to is unknown. So a gap counts for each
 * ring that ever lost an event, and only for those.
 */
static void settle(const struct merge *merge, struct events *events)
{
	const struct cuf_header *header = &events->reader->header;
	uint64_t lost = header->framework_overwritten + header->lost[CUF_LOST_FRAMEWORK_RING];

	if (events->ring == CUF_SEC_RING)
		lost = header->overwritten + header->lost[CUF_LOST_RING];
	if (!merge->sorted)
		sort_again(events);
	else if (lost || !events->reader->complete)
		events->complete_since = merge->last_gap;
	reader_drop(events->reader, events->ring);
}

static void end_listening(const struct merge *merge, const struct events *events)
{
	const struct events_listener *listener = merge->listener;
	struct event_merge again;
	struct cuf_event event;

	if (!listener || !listener->hear)
		return;
	if (!merge->sorted) {
		listener->forget(listener->state);
		event_merge_begin(&again, events, 0);
		for (size_t before = 0; event_merge_next(&again, &event); before = again.at[1])
			listener->hear(listener->state, &event, again.at[1] != before);
	}
	listener->end(listener->state);
}

/* Merges both rings at once: a gap in the numbers is a loss only if neither ring has the number. */
struct events *events_new(const struct reader *reader, const struct events_listener *listener)
{
	struct events *rings[RINGS] = { ring_new(reader, CUF_SEC_RING),
					ring_new(reader, CUF_SEC_FRAMEWORK_RING) };
	struct merge merge = { .sorted = true, .listener = listener };
	rings[0]->framework = rings[1];
	for (unsigned ring = 0; ring < RINGS; ring++)
		if (rings[ring]->stride)
			lanes_init(&merge.lanes[ring], reader, rings[ring]->ring);
	start(&merge, rings);
	while (merge.heap.count) {
		uint32_t lane = merge.heap.items[0];
		struct cursor *cursor = &merge.cursors[lane];
		uint64_t seq;
		append(&merge, cursor, merge.heap.keys[lane]);
		seq = advance(cursor);
		lane_heap_settle(&merge.heap, seq, !seq);
	}
	lane_heap_fini(&merge.heap);
	free(merge.cursors);
	for (unsigned ring = 0; ring < RINGS; ring++) {
		lanes_fini(&merge.lanes[ring]);
		settle(&merge, rings[ring]);
	}
	end_listening(&merge, rings[0]);
	return rings[0];
}

void events_free(struct events *events)
{
	if (!events)
		return;
	events_free(events->framework);
	free(events->order);
	free(events->earliest_ns);
	free(events->old.items);
	free(events->near.items);
	free(events->near_events);
	free(events);
}

void events_keep(struct events *events, size_t i, const struct cuf_event *event)
{
	xalloc_grow(&events->near_events, events->near.count, &events->near_room,
		    sizeof *events->near_events);
	events->near_events[events->near.count] = *event;
	list_event(&events->near, i);
}

struct cuf_event events_near(const struct events *events, size_t i)
{
	size_t low = 0, high = events->near.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (events->near.items[middle] < i)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < events->near.count && events->near.items[low] == i)
		return events->near_events[low];
	return events_get(events, i);
}

size_t events_after(const struct events *events, uint64_t seq)
{
	size_t low = 0, high = events->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (events_seq(events, middle) <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The seq of the last event of one ring up to a time; 0: all events are later. */
static uint64_t last_at_time(const struct events *events, uint64_t time_ns)
{
	size_t blocks = (events->count + EVENTS_BLOCK - 1) / EVENTS_BLOCK;

	while (blocks && events->earliest_ns[blocks - 1] > time_ns)
		blocks--;
	for (size_t i = least_of(blocks * EVENTS_BLOCK, events->count); i--;) {
		struct cuf_event event = events_get(events, i);
		if (event.time_ns <= time_ns)
			return event.seq;
	}
	return 0;
}

uint64_t seq_at_time(const struct events *events, uint64_t time_ns)
{
	return most_of(last_at_time(events, time_ns), last_at_time(events->framework, time_ns));
}

/* Forgets what is at or after that index. */
static void cut_list(struct event_list *list, size_t count)
{
	while (list->count && list->items[list->count - 1] >= count)
		list->count--;
}

void events_cut(struct events *events, uint64_t seq)
{
	if (events->framework)
		events_cut(events->framework, seq);
	if (seq >= events->last_seq)
		return;
	for (size_t i = events_after(events, seq); events->count > i; events->count--)
		events->phase_count -= events_get(events, events->count - 1).op == CUF_OP_PHASE;
	cut_list(&events->old, events->count);
	events->last_seq = events->count ? events_seq(events, events->count - 1) : 0;
	if (!events->count)
		events->first_seq = 0;
}

void events_passed(const struct events *events, size_t passed)
{
	if (passed % DROP_EVERY == DROP_EVERY - 1)
		reader_drop(events->reader, events->ring);
}

/* Events of several threads alternate, so the processor does not foresee where the next one is. */
enum { AHEAD = 16 };

/* Keeps the number of the next event of a ring, so that event_merge_next only compares two. */
static void look(struct event_merge *merge, unsigned ring)
{
	const struct events *events = merge->rings[ring];
	size_t at = merge->at[ring];
	if (at + AHEAD < events->count)
		__builtin_prefetch(events->at + (uint64_t)events->order[at + AHEAD] * EVENTS_UNIT);
	if (at < events->count)
		merge->next[ring] = events_seq(events, at);
}

void event_merge_begin(struct event_merge *merge, const struct events *events, uint64_t after_seq)
{
	*merge = (struct event_merge){ .rings = { events, events->framework } };
	for (unsigned ring = 0; ring < RINGS; ring++) {
		merge->at[ring] = after_seq ? events_after(merge->rings[ring], after_seq) : 0;
		look(merge, ring);
	}
}

bool event_merge_next(struct event_merge *merge, struct cuf_event *event)
{
	bool have[RINGS] = { merge->at[0] < merge->rings[0]->count,
			     merge->at[1] < merge->rings[1]->count };
	unsigned ring = have[1] && (!have[0] || merge->next[1] < merge->next[0]);
	if (!have[ring])
		return false;
	*event = events_get(merge->rings[ring], merge->at[ring]++);
	look(merge, ring);
	events_passed(merge->rings[ring], merge->at[ring]);
	return true;
}
