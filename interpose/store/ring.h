/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of segments: one for device events, one for the malloc family, one for frameworks. A thread appends to a segment of its own
 * without any shared write; a full segment is exchanged for the oldest one that nobody owns. Contract: the thread is
 * entered; NULL or a false return means no room, already counted.
 */
#ifndef CUF_RING_H
#define CUF_RING_H

#include <stdbool.h>
#include "interpose/process/thread.h"

/* Appends a copy of the event to the device or the framework ring, giving it its sequence number: one order for both. */
uint64_t cuf_ring_event(struct cuf_thread_state *thread, enum cuf_ring ring, struct cuf_event *event);

/* Room for one host event: its place, to be filled and then committed. */
struct cuf_host_event *cuf_ring_host_exchange(struct cuf_thread_state *thread); /* in a new segment */

static inline struct cuf_host_event *cuf_ring_host_reserve(struct cuf_thread_state *thread)
{
	return __builtin_expect(thread->host_next != thread->host_end, 1) ? thread->host_next : cuf_ring_host_exchange(thread);
}

static inline void cuf_ring_host_commit(struct cuf_thread_state *thread)
{
	struct cuf_segment *s = thread->segments[CUF_RING_HOST];
	thread->host_next++;
	__atomic_store_n(&s->used, s->used + 1, __ATOMIC_RELEASE);
}

/* A new thread goes on where the slot's last thread stopped. */
void cuf_ring_inherit(struct cuf_thread_state *thread);

#endif
