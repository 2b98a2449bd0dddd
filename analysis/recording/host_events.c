/* SPDX-License-Identifier: Apache-2.0 */
/* Host events, streamed in order of their millisecond; memory of segments that were read is given back at once. */
#include "analysis/recording/events.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/recording/segments.h"
#include "analysis/base/xalloc.h"

struct cursor {
	size_t segment, end;
	uint32_t record, used;
	uint32_t tid;
	const uint8_t *records;
	uint64_t base_ns;         /* of the last TIME record */
	uint64_t mean_bytes;
	struct cuf_host_event event; /* the one that the cursor stands on */
};

struct host_stream {
	const struct reader *reader;
	struct lanes lanes;
	struct cursor *cursors;
	struct lane_heap heap;
	uint32_t stride;
};

static void enter_segment(struct host_stream *h, struct cursor *c)
{
	struct cuf_segment s;
	c->record = c->used = 0;
	if (!reader_segment(h->reader, CUF_SEC_HOST_RING, h->lanes.segments[c->segment].index, &s, &c->records))
		return;
	c->used = s.used;
	c->tid = s.tid;
	c->base_ns = s.start_ns;
	c->mean_bytes = s.sample_mean_bytes;
}

/* Stands on the next event of the lane and gives its time; false: the lane is at its end. */
static bool advance(struct host_stream *h, struct cursor *c, uint64_t *time_ns)
{
	for (;;) {
		while (c->record < c->used) {
			memcpy(&c->event, c->records + (size_t)c->record++ * h->stride, sizeof c->event);
			switch (cuf_host_op(c->event.word0)) {
			case CUF_HOST_NONE: break;
			case CUF_HOST_TIME: c->base_ns = c->event.word1; break;
			case CUF_HOST_THREAD: c->tid = (uint32_t)c->event.word1; break;
			default:
				*time_ns = c->base_ns + (uint64_t)cuf_host_tick_ms(c->event.word0) * 1000000u;
				return true;
			}
		}
		if (c->records)
			reader_drop_range(h->reader, c->records - sizeof(struct cuf_segment), h->reader->header.host_segment_bytes);
		if (++c->segment >= c->end)
			return false;
		enter_segment(h, c);
	}
}

struct host_stream *host_stream_new(const struct reader *reader)
{
	struct host_stream *h = xalloc_zeroed(1, sizeof *h);
	h->reader = reader;
	h->stride = reader->sections[CUF_SEC_HOST_RING].stride;
	lanes_init(&h->lanes, reader, CUF_SEC_HOST_RING);
	h->cursors = xalloc_zeroed(h->lanes.lane_count, sizeof *h->cursors);
	lane_heap_init(&h->heap, h->lanes.lane_count);
	for (size_t i = 0; i < h->lanes.lane_count; i++) {
		struct cursor *c = &h->cursors[i];
		uint64_t time_ns;
		c->segment = h->lanes.lanes[i].first;
		c->end = c->segment + h->lanes.lanes[i].count;
		enter_segment(h, c);
		if (advance(h, c, &time_ns))
			lane_heap_push(&h->heap, (uint32_t)i, time_ns);
	}
	return h;
}

bool host_stream_next(struct host_stream *stream, struct host_event *event)
{
	struct cursor *c;
	uint64_t next_ns = 0;
	bool more;
	if (!stream->heap.count)
		return false;
	c = &stream->cursors[stream->heap.items[0]];
	*event = (struct host_event){
		.time_ns = stream->heap.keys[stream->heap.items[0]], .addr = cuf_host_addr(c->event.word0),
		.bytes = cuf_host_bytes(c->event.word1), .sample_mean_bytes = c->mean_bytes,
		.stack = cuf_host_stack(c->event.word1), .tid = c->tid, .op = cuf_host_op(c->event.word0),
	};
	more = advance(stream, c, &next_ns);
	lane_heap_settle(&stream->heap, next_ns, !more);
	return true;
}

void host_stream_free(struct host_stream *stream)
{
	if (!stream)
		return;
	lane_heap_fini(&stream->heap);
	free(stream->cursors);
	lanes_fini(&stream->lanes);
	free(stream);
}

int host_event_sign(unsigned op)
{
	static const signed char signs[16] = {
		[CUF_HOST_ALLOC] = 1, [CUF_HOST_ZEROED] = 1, [CUF_HOST_RESIZED] = 1, [CUF_HOST_ALIGNED] = 1, [CUF_HOST_RESTORE] = 1,
		[CUF_HOST_MMAP] = 1, [CUF_HOST_FREE] = -1, [CUF_HOST_FREE_RESIZE] = -1, [CUF_HOST_MUNMAP] = -1,
	};
	return signs[op & 15];
}
