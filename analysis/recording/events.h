/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one recording in the order in which they happened. Each thread wrote segments of
 * its own; here they are merged. Device and framework events are merged exactly, by sequence
 * number, with an index of 4 bytes an event. Host events are merged by millisecond and streamed.
 *
 * Device and framework events share one order of sequence numbers but are in two rings, and each
 * ring has an index of its own. Most queries are about the few events of the driver, while a
 * framework may have written ten million. event_merge walks both rings as one history.
 *
 * Contract: the reader outlives everything here. Events are returned as copies with fields as
 * hostile as the file. No errors: what is torn or damaged is left out. Times are CLOCK_MONOTONIC
 * ns.
 */
#pragma once

#include <string.h>
#include "analysis/recording/reader.h"

/* Indices of some events, ascending. */
struct event_list { uint32_t *items; size_t count, room; };

struct events {                       /* of one ring */
	const struct reader *reader;
	enum cuf_section_id ring; /* CUF_SEC_RING or CUF_SEC_FRAMEWORK_RING */
	const uint8_t *at;        /* the section */
	uint32_t stride;
	uint32_t *order;          /* places of records, in units of 8 bytes, ascending by seq */
	size_t count, room;
	struct event_list old;    /* frees of blocks that are older than the first event */
	uint64_t first_ns;        /* of the first event */
	uint64_t *earliest_ns;    /* the least time of each EVENTS_BLOCK events */
	size_t block_room;
	uint64_t first_seq, last_seq; /* 0: no event */
	uint64_t last_free_seq;   /* 0: none freed a block */
	/* Every event of this ring after this seq is here; 0: none was ever lost. Of those before
	 * it, some or all are gone. */
	uint64_t complete_since;
	size_t phase_count;       /* PHASE events */
	/* copies of some events, for events_near; ascending */
	struct event_list near;
	struct cuf_event *near_events; size_t near_room;
	/* the other ring; never NULL in the result of events_new, NULL in itself */
	struct events *framework;
};

/* Who hears each event while they are put in order. Of a damaged recording the order shows only at
 * the end: forget is called then, and all are heard again. end: after the last one. */
struct events_listener {
	void (*hear)(void *state, const struct cuf_event *event, bool is_framework); /* or NULL */
	void (*end)(void *state);
	void (*forget)(void *state);
	void *state;
};
/* The events of the device ring; those of the framework ring are its member. listener: or NULL. */
struct events *events_new(const struct reader *reader, const struct events_listener *listener);
void events_free(struct events *events); /* NULL is fine */
/* Forgets what came after that number, in both rings. */
void events_cut(struct events *events, uint64_t seq);
/* What places count in: segments and records are multiples of it (reader.h). */
enum { EVENTS_UNIT = 8, EVENTS_BLOCK = 32 };
/* i below count. Copies the record first: a live recording may change under the reader. */
static inline struct cuf_event events_get(const struct events *events, size_t i)
{
	struct cuf_event event;
	memcpy(&event, events->at + (uint64_t)events->order[i] * EVENTS_UNIT, sizeof event);
	reader_decoded(events->reader, events->ring, 1);
	if (event.kind >= CUF_KIND_MAX)
		event.kind = CUF_KIND_NONE;
	return event;
}
/* The same for a search around a moment: what a sweep has kept for it is not read again. */
struct cuf_event events_near(const struct events *events, size_t i);
/* Keeps event i, which comes after all that were kept before. */
void events_keep(struct events *events, size_t i, const struct cuf_event *event);
/* The seq of an event, without the rest of it. */
static inline uint64_t events_seq(const struct events *events, size_t i)
{
	uint64_t seq;
	memcpy(&seq, events->at + (uint64_t)events->order[i] * EVENTS_UNIT, sizeof seq);
	return seq;
}
/* Index of the first event with a larger seq; count if there is none. */
size_t events_after(const struct events *events, uint64_t seq);
/* The seq of the last event of both rings at or before a time; 0: all that are left are later. */
uint64_t seq_at_time(const struct events *events, uint64_t time_ns);
/* A walk calls this with the number of events it has passed. Now and then it unmaps pages, so the
 * process never holds the whole ring. */
void events_passed(const struct events *events, size_t passed);

/* Walks both rings in order of seq, starting after a seq (0: with the first event). */
struct event_merge {
	const struct events *rings[2];
	size_t at[2];
	uint64_t next[2]; /* seq of the event at `at`; meaningless at the end */
};
void event_merge_begin(struct event_merge *merge, const struct events *events, uint64_t after_seq);
bool event_merge_next(struct event_merge *merge, struct cuf_event *event);

struct host_event {
	uint64_t time_ns;
	uint64_t addr;
	uint64_t bytes;
	uint64_t sample_mean_bytes; /* 0: every event was recorded */
	uint32_t stack;           /* that allocated the block; also on a free of a known block */
	uint32_t tid;
	/* enum cuf_host_op without TIME and THREAD, which are consumed here */
	unsigned op;
};

/* A moment among the host events. */
struct heap_moment {
	uint64_t time_ns; /* CLOCK_MONOTONIC; CUF_UNKNOWN: the end */
	uint64_t events;  /* of the stream up to the moment; CUF_UNKNOWN: those up to time_ns */
	const struct cuf_host_peak *note; /* what was live then, where events do not tell; NULL */
};
/* Whether the event at this place of the stream, from 0, came after the moment. */
static inline bool heap_is_after(const struct heap_moment *moment, uint64_t place,
				 uint64_t time_ns)
{
	if (moment->events != CUF_UNKNOWN)
		return place >= moment->events;
	return time_ns > moment->time_ns;
}

struct host_stream;
struct host_stream *host_stream_new(const struct reader *reader);
/* For whoever wants the events after that time: segments that end before it are not read. Some
 * earlier events come all the same. */
struct host_stream *host_stream_after(const struct reader *reader, uint64_t time_ns);
bool host_stream_next(struct host_stream *stream, struct host_event *event);
/* The next events, as many as are decoded together; 0: at the end. They are valid until the next
 * call. */
size_t host_stream_row(struct host_stream *stream, const struct host_event **row);
/* Since when no event is missing; 0: none was overwritten. */
uint64_t host_stream_complete_ns(const struct host_stream *stream);
void host_stream_free(struct host_stream *stream); /* NULL is fine */

/* +1: the block is live after it; -1: it was until then; 0: neither. */
static inline int host_event_sign(unsigned op)
{
	static const signed char signs[16] = {
		[CUF_HOST_ALLOC] = 1,	[CUF_HOST_ZEROED] = 1,	     [CUF_HOST_RESIZED] = 1,
		[CUF_HOST_ALIGNED] = 1, [CUF_HOST_RESTORE] = 1,	     [CUF_HOST_MMAP] = 1,
		[CUF_HOST_FREE] = -1,	[CUF_HOST_FREE_RESIZE] = -1, [CUF_HOST_MUNMAP] = -1,
	};
	return signs[op & 15];
}
