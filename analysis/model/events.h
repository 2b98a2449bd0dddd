/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one recording in the order in which they happened. Each thread wrote segments of its own; here they
 * are merged: device events exactly, by sequence number (an index of 4 bytes an event), host events by their
 * millisecond (streamed, nothing kept). Events are handed out as copies, their fields as hostile as the file.
 *
 * Contract: the reader outlives both. No errors: what is torn or damaged is left out. Times are CLOCK_MONOTONIC ns.
 */
#ifndef ANALYSIS_MODEL_EVENTS_H
#define ANALYSIS_MODEL_EVENTS_H

#include "analysis/model/reader.h"

struct events {
	const struct reader *reader;
	uint32_t *order;          /* places in the ring, ascending by seq */
	size_t count;
	uint64_t first_seq, last_seq; /* 0: no event */
	/* Every event after this seq is here: 0 when none was ever lost. Older than it, some or all are gone. */
	uint64_t complete_since;
};

struct events *events_new(const struct reader *reader);
void events_free(struct events *events); /* NULL is fine */
/* i below count. */
struct cuf_event events_get(const struct events *events, size_t i);
/* Index of the first event with a larger seq; count if there is none. */
size_t events_after(const struct events *events, uint64_t seq);

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
