/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of segments: one for device events, one for the malloc family, one for frameworks. A thread appends to a segment of its own
 * without any shared write; a full segment is exchanged for the oldest one that nobody owns. Contract: the thread is
 * entered; NULL or a false return means no room, already counted.
 */
#ifndef CUF_RING_H
#define CUF_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/store/recording.h"

/* Where one thread writes. Zeroed, then slot, slot_index, tid and sample_mean_bytes are set by the thread's owner. */
struct cuf_writer {
	struct cuf_thread *slot;
	unsigned slot_index;
	uint32_t tid;
	struct cuf_segment *segments[CUF_RINGS]; /* NULL: none */
	struct cuf_host_event *host_next;        /* the next record of the host segment */
	struct cuf_host_event *host_end;         /* where that segment ends */
	uint64_t host_time_base_ns;              /* of its last TIME record; 0: one must come first */
	uint64_t sample_mean_bytes;              /* host=sampled: the mean that a new host segment states */
};

/* Appends a copy of the event to the device or the framework ring, giving it its sequence number: one order for both. */
uint64_t cuf_ring_event(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_event *event);

/* Room for one host event: its place, to be filled and then committed. */
struct cuf_host_event *cuf_ring_host_exchange(struct cuf_writer *writer); /* in a new segment */

static inline struct cuf_host_event *cuf_ring_host_reserve(struct cuf_writer *writer)
{
	return __builtin_expect(writer->host_next != writer->host_end, 1) ? writer->host_next : cuf_ring_host_exchange(writer);
}

static inline void cuf_ring_host_commit(struct cuf_writer *writer)
{
	struct cuf_segment *s = writer->segments[CUF_RING_HOST];
	writer->host_next++;
	__atomic_store_n(&s->used, s->used + 1, __ATOMIC_RELEASE);
}

/* A new thread goes on where the slot's last thread stopped. */
void cuf_ring_inherit(struct cuf_writer *writer);

#endif
