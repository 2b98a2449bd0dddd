/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one recording in the order in which they happened. Each thread wrote segments of its own; here they
 * are merged: device and framework events exactly, by sequence number (an index of 4 bytes an event), host events by
 * their millisecond (streamed, nothing kept). Events are handed out as copies, their fields as hostile as the file.
 *
 * Device and framework events share one order of sequence numbers but lie in two rings, so each ring has an index of its
 * own: most questions are about the driver's few events, and a framework may have written ten millions. event_merge
 * walks both as one history.
 *
 * Contract: the reader outlives all. No errors: what is torn or damaged is left out. Times are CLOCK_MONOTONIC ns.
 */
#ifndef ANALYSIS_RECORDING_EVENTS_H
#define ANALYSIS_RECORDING_EVENTS_H

#include "analysis/recording/reader.h"

struct events {                       /* of one ring */
	const struct reader *reader;
	enum cuf_section_id ring; /* CUF_SEC_RING, or CUF_SEC_FRAMEWORK_RING: a framework's blocks, phases */
	uint32_t per_segment, stride;
	uint64_t segment_bytes;
	uint32_t *order;          /* places in the ring, ascending by seq */
	size_t count, room;
	uint32_t *roles;          /* indices of the ROLE events, which tell of blocks of either ring */
	size_t role_count, role_room;
	uint64_t first_seq, last_seq; /* 0: no event */
	/* Every event of this ring after this seq is here: 0 when none was ever lost. Older than it, some or all are gone. */
	uint64_t complete_since;
	struct events *framework; /* the other ring's; never NULL in what events_new gave, NULL in itself */
};

/* The device ring's events, with the framework ring's beside them. */
struct events *events_new(const struct reader *reader);
void events_free(struct events *events); /* NULL is fine */
/* i below count. */
struct cuf_event events_get(const struct events *events, size_t i);
/* Index of the first event with a larger seq; count if there is none. */
size_t events_after(const struct events *events, uint64_t seq);
/* A walk calls this with the number of events it has passed: gives pages back now and then, so that the whole ring is never held. */
void events_passed(const struct events *events, size_t passed);

/* Both rings in order of seq, beginning with the first event after a seq (0: all). */
struct event_merge {
	const struct events *rings[2];
	size_t at[2];
	struct cuf_event next[2];
	bool have[2];
};
void event_merge_begin(struct event_merge *merge, const struct events *events, uint64_t after_seq);
bool event_merge_next(struct event_merge *merge, struct cuf_event *event);

struct host_event {
	uint64_t time_ns;
	uint64_t addr;
	uint64_t bytes;
	uint64_t sample_mean_bytes; /* 0: every event was recorded */
	uint32_t stack;           /* of the block's allocation, also on a free where the block was known */
	uint32_t tid;
	unsigned op;              /* enum cuf_host_op; never TIME or THREAD, which are consumed here */
};

struct host_stream;
struct host_stream *host_stream_new(const struct reader *reader);
bool host_stream_next(struct host_stream *stream, struct host_event *event);
void host_stream_free(struct host_stream *stream); /* NULL is fine */

/* +1: the block is live after it; -1: it was until then; 0: neither. */
int host_event_sign(unsigned op);

#endif
