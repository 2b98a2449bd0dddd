/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of segments: one for device events, one for the malloc family, one for frameworks. A
 * thread appends to a segment that it owns, without any shared write. A full segment is exchanged
 * for the oldest one without an owner.
 *
 * Contract: the calling thread is inside the recorder, and the writer is its own. NULL means that
 * no segment was free; the event was dropped and counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/store/recording.h"

/*
 * Where one thread writes. It starts zeroed; the thread's owner sets slot, slot_index, tid and
 * sample_mean_bytes.
 */
struct cuf_writer {
	struct cuf_thread *slot;
	unsigned slot_index;
	uint32_t tid;
	/* NULL: none owned */
	struct cuf_segment *segments[CUF_RINGS];
	/* the next record of the host segment, and where that segment ends */
	struct cuf_host_event *host_next, *host_end;
	/* of the host segment's last TIME record; 0: one must come first */
	uint64_t host_time_base_ns;
	/* host=sampled: the mean that a new host segment states */
	uint64_t sample_mean_bytes;
};

/*
 * Appends a copy of the event to the device or the framework ring. Returns its sequence number:
 * one order for both.
 */
uint64_t cuf_ring_event(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_event *event);

/* The place of one host event in a new segment. */
struct cuf_host_event *cuf_ring_host_exchange(struct cuf_writer *writer);

/* The place of one host event, to be filled in and then committed. */
static inline struct cuf_host_event *cuf_ring_host_reserve(struct cuf_writer *writer)
{
	if (__builtin_expect(writer->host_next != writer->host_end, 1))
		return writer->host_next;
	return cuf_ring_host_exchange(writer);
}

static inline void cuf_ring_host_commit(struct cuf_writer *writer)
{
	struct cuf_segment *segment = writer->segments[CUF_RING_HOST];

	writer->host_next++;
	__atomic_store_n(&segment->used, segment->used + 1, __ATOMIC_RELEASE);
}

/* For a new thread: continues in the segments that the slot's last thread owned. */
void cuf_ring_inherit(struct cuf_writer *writer);
