/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts segments into lanes, and the binary heap that merges lanes. */
#include "analysis/recording/segments.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

static int by_thread_and_ticket(const void *a, const void *b)
{
	const struct lane_segment *left = a, *right = b;
	if (left->thread != right->thread)
		return compare_numbers(left->thread, right->thread);
	if (left->ticket != right->ticket)
		return compare_numbers(left->ticket, right->ticket);
	return compare_numbers(left->index, right->index);
}

/* When the last round began, of as many tickets as there are segments. */
static uint64_t complete_since(const struct lanes *lanes, uint64_t segments)
{
	uint64_t last = 0, since_ns = UINT64_MAX;
	for (size_t i = 0; i < lanes->segment_count; i++)
		last = most_of(last, lanes->segments[i].ticket);
	if (last <= segments)
		return 0;
	for (size_t i = 0; i < lanes->segment_count; i++)
		if (lanes->segments[i].ticket > last - segments)
			since_ns = least_of(since_ns, lanes->segments[i].start_ns);
	return since_ns;
}

void lanes_init(struct lanes *lanes, const struct reader *reader, enum cuf_section_id ring)
{
	uint64_t count = reader_segment_count(reader, ring);
	size_t room = 0, lane_room = 0;
	uint64_t events = 0;
	*lanes = (struct lanes){ 0 };
	for (uint64_t i = 0; i < count && i < UINT32_MAX; i++) {
		struct cuf_segment segment;
		const uint8_t *records;
		if (!reader_segment(reader, ring, i, &segment, &records))
			continue;
		xalloc_grow(&lanes->segments, lanes->segment_count, &room, sizeof *lanes->segments);
		lanes->segments[lanes->segment_count++] =
			(struct lane_segment){ segment.ticket, segment.start_ns, segment.thread,
					       (uint32_t)i };
		events += segment.used;
	}
	__atomic_store_n(&reader->sweeps[ring].events, events, __ATOMIC_RELAXED);
	reader_drop(reader, ring); /* reading each header has mapped the pages around it */
	lanes->complete_ns = complete_since(lanes, count);
	if (lanes->segment_count)
		qsort(lanes->segments, lanes->segment_count, sizeof *lanes->segments,
		      by_thread_and_ticket);
	for (size_t i = 0; i < lanes->segment_count; i++) {
		if (!i || lanes->segments[i].thread != lanes->segments[i - 1].thread) {
			xalloc_grow(&lanes->lanes, lanes->lane_count, &lane_room,
				    sizeof *lanes->lanes);
			lanes->lanes[lanes->lane_count++] = (struct lane){ i, 0 };
		}
		lanes->lanes[lanes->lane_count - 1].count++;
	}
}

void lanes_fini(struct lanes *lanes)
{
	free(lanes->segments);
	free(lanes->lanes);
}

void lane_heap_init(struct lane_heap *heap, size_t lanes)
{
	heap->items = xalloc_zeroed(lanes, sizeof *heap->items);
	heap->keys = xalloc_zeroed(lanes, sizeof *heap->keys);
	heap->count = 0;
}

void lane_heap_fini(struct lane_heap *heap)
{
	free(heap->items);
	free(heap->keys);
}

void lane_heap_push(struct lane_heap *heap, uint32_t lane, uint64_t key)
{
	size_t i = heap->count++;
	heap->keys[lane] = key;
	while (i && heap->keys[heap->items[(i - 1) / 2]] > key) {
		heap->items[i] = heap->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->items[i] = lane;
}

uint64_t lane_heap_second(const struct lane_heap *heap)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 1; i < heap->count && i <= 2; i++)
		least = least_of(least, heap->keys[heap->items[i]]);
	return least;
}

/* The key at the root grew, or the root leaves: moves the root down to its place. */
void lane_heap_settle(struct lane_heap *heap, uint64_t key, bool gone)
{
	uint32_t lane = heap->items[0];
	size_t i = 0, child;
	if (gone) {
		lane = heap->items[--heap->count];
		key = heap->keys[lane];
		if (!heap->count)
			return;
	}
	heap->keys[lane] = key;
	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count &&
		    heap->keys[heap->items[child + 1]] < heap->keys[heap->items[child]])
			child++;
		if (heap->keys[heap->items[child]] >= key)
			break;
		heap->items[i] = heap->items[child];
		i = child;
	}
	heap->items[i] = lane;
}
