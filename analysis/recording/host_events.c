/* SPDX-License-Identifier: Apache-2.0 */
/* Host events, streamed by time. The pages of segments that were read are released every few
 * segments, so memory stays bounded. */
#include "analysis/recording/events.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/recording/segments.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

struct host_cursor {
	size_t segment, end;
	uint32_t record, used;
	uint32_t tid;
	const uint8_t *records;
	uint64_t base_ns;         /* of the last TIME record; ticks are relative to it */
	uint64_t mean_bytes;
	struct cuf_host_event event; /* the event at the cursor */
};

/* Events that are decoded together: most come from the lane of the one before. */
enum { ROW = 128 };

/* Segments that are read before pages are released: each release interrupts the other threads. */
enum { DROP_EVERY = 32 };

struct host_stream {
	const struct reader *reader;
	struct lanes lanes;
	struct host_cursor *cursors;
	struct lane_heap heap;
	uint32_t stride;
	struct host_event row[ROW];
	size_t at, count; /* in row: those that host_stream_next has returned, and all */
	size_t passed;    /* segments since pages were released */
};

/* Each segment begins with its own base time, thread and sample mean, so it can be read without
 * those before it. */
static void enter_segment(struct host_stream *stream, struct host_cursor *cursor)
{
	struct cuf_segment segment;
	reader_decoded(stream->reader, CUF_SEC_HOST_RING, cursor->record);
	cursor->record = cursor->used = 0;
	if (!reader_segment(stream->reader, CUF_SEC_HOST_RING,
			    stream->lanes.segments[cursor->segment].index, &segment,
			    &cursor->records))
		return;
	cursor->used = segment.used;
	cursor->tid = segment.tid;
	cursor->base_ns = segment.start_ns;
	cursor->mean_bytes = segment.sample_mean_bytes;
}

/* Segments of a lane are anywhere in the ring. What others still read is mapped again. */
static void drop_segments(struct host_stream *stream)
{
	if (++stream->passed < most_of(DROP_EVERY, stream->lanes.lane_count))
		return;
	stream->passed = 0;
	reader_drop(stream->reader, CUF_SEC_HOST_RING);
}

/* Moves to the next event of the lane and stores its time; false: the end of the lane. TIME and
 * THREAD records change the state of the cursor only. */
static bool host_advance(struct host_stream *stream, struct host_cursor *cursor, uint64_t *time_ns)
{
	for (;;) {
		while (cursor->record < cursor->used) {
			memcpy(&cursor->event,
			       cursor->records + (size_t)cursor->record++ * stream->stride,
			       sizeof cursor->event);
			switch (cuf_host_op(cursor->event.word0)) {
			case CUF_HOST_NONE: break;
			case CUF_HOST_TIME: cursor->base_ns = cursor->event.word1; break;
			case CUF_HOST_THREAD: cursor->tid = (uint32_t)cursor->event.word1; break;
			default:
				*time_ns =
					cursor->base_ns +
					(uint64_t)cuf_host_tick_ms(cursor->event.word0) * 1000000u;
				return true;
			}
		}
		drop_segments(stream);
		if (cursor->segment + 1 >= cursor->end)
			return false;
		cursor->segment++;
		enter_segment(stream, cursor);
	}
}

/* The first segment of the lane that may have events after that time: a thread begins a segment
 * when the one before is full. */
static size_t first_segment(const struct lanes *lanes, size_t lane, uint64_t time_ns)
{
	size_t at = lanes->lanes[lane].first, last = at + lanes->lanes[lane].count - 1;

	while (time_ns && at < last && lanes->segments[at + 1].start_ns <= time_ns)
		at++;
	return at;
}

struct host_stream *host_stream_new(const struct reader *reader)
{
	return host_stream_after(reader, 0);
}

struct host_stream *host_stream_after(const struct reader *reader, uint64_t time_ns)
{
	struct host_stream *stream = xalloc_zeroed(1, sizeof *stream);
	stream->reader = reader;
	stream->stride = reader->sections[CUF_SEC_HOST_RING].stride;
	lanes_init(&stream->lanes, reader, CUF_SEC_HOST_RING);
	stream->cursors = xalloc_zeroed(stream->lanes.lane_count, sizeof *stream->cursors);
	lane_heap_init(&stream->heap, stream->lanes.lane_count);
	for (size_t i = 0; i < stream->lanes.lane_count; i++) {
		struct host_cursor *cursor = &stream->cursors[i];
		uint64_t first_ns;
		cursor->segment = first_segment(&stream->lanes, i, time_ns);
		cursor->end = stream->lanes.lanes[i].first + stream->lanes.lanes[i].count;
		enter_segment(stream, cursor);
		if (host_advance(stream, cursor, &first_ns))
			lane_heap_push(&stream->heap, (uint32_t)i, first_ns);
	}
	return stream;
}

/* Field by field into its place: a copy of small fields at once would stall the processor. */
static void fill_event(struct host_event *event, const struct host_cursor *cursor, uint64_t time_ns)
{
	event->time_ns = time_ns;
	event->addr = cuf_host_addr(cursor->event.word0);
	event->bytes = cuf_host_bytes(cursor->event.word1);
	event->sample_mean_bytes = cursor->mean_bytes;
	event->stack = cuf_host_stack(cursor->event.word1);
	event->tid = cursor->tid;
	event->op = cuf_host_op(cursor->event.word0);
}

/* Decodes the next row. A lane is read on while it is the earliest one, without the heap. */
static void fill_row(struct host_stream *stream)
{
	struct lane_heap *heap = &stream->heap;

	stream->at = stream->count = 0;
	while (stream->count < ROW && heap->count) {
		uint32_t lane = heap->items[0];
		struct host_cursor *cursor = &stream->cursors[lane];
		uint64_t time_ns = heap->keys[lane], until_ns = lane_heap_second(heap);
		bool more;

		do {
			fill_event(&stream->row[stream->count++], cursor, time_ns);
			more = host_advance(stream, cursor, &time_ns);
		} while (more && time_ns <= until_ns && stream->count < ROW);
		lane_heap_settle(heap, time_ns, !more);
	}
}

size_t host_stream_row(struct host_stream *stream, const struct host_event **row)
{
	size_t count;

	if (stream->at == stream->count)
		fill_row(stream);
	*row = &stream->row[stream->at];
	count = stream->count - stream->at;
	stream->at = stream->count;
	return count;
}

bool host_stream_next(struct host_stream *stream, struct host_event *event)
{
	if (stream->at == stream->count)
		fill_row(stream);
	if (stream->at == stream->count)
		return false;
	*event = stream->row[stream->at++];
	return true;
}

uint64_t host_stream_complete_ns(const struct host_stream *stream)
{
	return stream->lanes.complete_ns;
}

void host_stream_free(struct host_stream *stream)
{
	if (!stream)
		return;
	for (size_t i = 0; i < stream->lanes.lane_count; i++)
		reader_decoded(stream->reader, CUF_SEC_HOST_RING, stream->cursors[i].record);
	reader_drop(stream->reader, CUF_SEC_HOST_RING);
	lane_heap_fini(&stream->heap);
	free(stream->cursors);
	lanes_fini(&stream->lanes);
	free(stream);
}

