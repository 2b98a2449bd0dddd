/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: which thread owns which, and appending to one's own. A segment is owned when its
 * `owned` is 1 and a slot's word refers to it; the word is what a dead thread's segment is
 * reclaimed by.
 */
#include "interpose/store/ring.h"

#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/store/dropped.h"
#include "interpose/store/fault.h"
#include "interpose/store/liveness.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static const enum cuf_loss losses[CUF_RINGS] = {
	CUF_LOST_RING, CUF_LOST_HOST_RING, CUF_LOST_FRAMEWORK_RING
};

static struct cuf_segment *segment_at(enum cuf_ring ring, uint32_t index)
{
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];

	return (struct cuf_segment *)(place->at + index * place->segment_bytes);
}

/* ---- slot words ---- */

static uint32_t *slot_word(struct cuf_thread *slot, enum cuf_ring ring)
{
	uint32_t *const words[CUF_RINGS] = {
		&slot->segment, &slot->host_segment, &slot->framework_segment
	};

	return words[ring];
}

/*
 * Segment index + 1 in the low half, the slot's generation in the high half. So a word that was
 * read before the slot changed its thread never passes for the new thread's.
 */
static uint32_t make_word(const struct cuf_thread *slot, uint32_t index)
{
	uint32_t generation = __atomic_load_n(&slot->generation, __ATOMIC_RELAXED);

	return (generation & 0xffff) << 16 | (index + 1);
}

/* ---- ownership ---- */

/* Sets the segment that the thread appends to from now on, or NULL. */
static void set_segment(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_segment *segment)
{
	writer->segments[ring] = segment;
	if (ring != CUF_RING_HOST)
		return;
	writer->host_time_base_ns = 0; /* the first record is a TIME */
	writer->host_next = writer->host_end = NULL;
	if (segment) {
		struct cuf_host_event *first = (struct cuf_host_event *)(segment + 1);
		size_t bytes = cuf_recording.rings[ring].segment_bytes - sizeof *segment;

		writer->host_next = first + segment->used;
		writer->host_end = first + bytes / sizeof *first;
	}
}

/* Inside the ring, with a cursor inside the segment. */
static bool is_sound(enum cuf_ring ring, uint32_t index)
{
	static const uint32_t record_bytes[CUF_RINGS] = {
		sizeof(struct cuf_event), sizeof(struct cuf_host_event), sizeof(struct cuf_event)
	};
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];

	return index < place->segment_count &&
	       segment_at(ring, index)->used <= place->segment_bytes / record_bytes[ring];
}

void cuf_ring_inherit(struct cuf_writer *writer)
{
	for (unsigned ring = 0; ring < CUF_RINGS; ring++) {
		uint32_t *word = slot_word(writer->slot, ring);
		uint32_t old = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) & 0xffff;

		set_segment(writer, ring, NULL);
		if (!old)
			continue;
		if (!is_sound(ring, old - 1)) {
			cuf_fault(CUF_FAULT_RING);
			continue;
		}
		set_segment(writer, ring, segment_at(ring, old - 1));
		__atomic_store_n(word, make_word(writer->slot, old - 1), __ATOMIC_RELEASE);
	}
}

/* Takes a segment from a dead thread. false: its owner lives, or another thread was faster. */
static bool reclaim_segment(struct cuf_segment *segment, enum cuf_ring ring, uint32_t index)
{
	uint32_t word, tid, owner = __atomic_load_n(&segment->thread, __ATOMIC_RELAXED);
	struct cuf_thread *slot;

	if (owner >= cuf_recording.thread_count)
		return false;
	slot = &cuf_recording.threads[owner];
	word = __atomic_load_n(slot_word(slot, ring), __ATOMIC_ACQUIRE);
	tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
	if ((word & 0xffff) != index + 1 || !tid || cuf_thread_alive(tid))
		return false;
	__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE); /* pairs with the thread's last leave */
	return __atomic_compare_exchange_n(slot_word(slot, ring), &word, 0, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static void release_segment(struct cuf_writer *writer, enum cuf_ring ring)
{
	struct cuf_segment *segment = writer->segments[ring];
	uint32_t *word = slot_word(writer->slot, ring);

	set_segment(writer, ring, NULL);
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	if (segment)
		__atomic_store_n(&segment->owned, 0, __ATOMIC_RELEASE);
}

/*
 * Makes a segment that this thread has claimed its own. Readers see it empty before its old
 * records change.
 */
static void begin_segment(struct cuf_writer *writer, enum cuf_ring ring,
			  struct cuf_segment *segment, uint64_t ticket, uint32_t index)
{
	__atomic_store_n(&segment->used, 0, __ATOMIC_RELEASE);
	segment->ticket = ticket;
	segment->start_ns = cuf_now_ns();
	__atomic_store_n(&segment->thread, writer->slot_index, __ATOMIC_RELAXED);
	segment->tid = writer->tid;
	segment->sample_mean_bytes = 0;
	if (ring == CUF_RING_HOST && cuf_options.host == CUF_HOST_SAMPLED)
		segment->sample_mean_bytes = writer->sample_mean_bytes;
	__atomic_store_n(slot_word(writer->slot, ring), make_word(writer->slot, index),
			 __ATOMIC_RELEASE);
	set_segment(writer, ring, segment);
}

/*
 * Exchanges the thread's segment for the oldest that is free or whose owner is dead. NULL: none,
 * counted.
 */
static struct cuf_segment *exchange_segment(struct cuf_writer *writer, enum cuf_ring ring)
{
	struct cuf_ring_counts counts = cuf_recording_ring_counts(ring);
	unsigned count = cuf_recording.rings[ring].segment_count;
	bool filled_one = ring == CUF_RING_HOST && writer->segments[ring] &&
			  writer->host_next == writer->host_end;

	release_segment(writer, ring);
	for (unsigned attempt = 0; attempt < count; attempt++) {
		uint64_t ticket = __atomic_add_fetch(counts.tickets, 1, __ATOMIC_RELAXED);
		uint32_t index = (uint32_t)((ticket - 1) % count), free_mark = 0, used;
		struct cuf_segment *segment = segment_at(ring, index);

		if (!__atomic_compare_exchange_n(&segment->owned, &free_mark, 1, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
		    !reclaim_segment(segment, ring, index))
			continue;
		used = __atomic_load_n(&segment->used, __ATOMIC_ACQUIRE);
		if (!is_sound(ring, index)) {
			cuf_fault(CUF_FAULT_RING);
			return NULL;
		}
		if (used)
			__atomic_fetch_add(counts.overwritten, used, __ATOMIC_RELAXED);
		/* a thread that filled a segment writes much, and here nothing was written yet */
		if (filled_one && ticket <= count)
			cuf_recording_populate(segment, cuf_recording.rings[ring].segment_bytes);
		begin_segment(writer, ring, segment, ticket, index);
		return segment;
	}
	cuf_count_dropped(losses[ring]);
	return NULL;
}

/* ---- appending ---- */

/* The thread's segment with room for one more event; *place is where that goes. NULL: dropped. */
static inline struct cuf_segment *find_room(struct cuf_writer *writer, enum cuf_ring ring,
					    struct cuf_event **place)
{
	const size_t segment_bytes = cuf_recording.rings[ring].segment_bytes;
	struct cuf_segment *segment = writer->segments[ring];

	/* in 64 bits, so that a cursor that was overwritten cannot wrap around */
	if (__builtin_expect(!segment || (uint64_t)segment->used * sizeof **place + sizeof **place +
						 sizeof *segment > segment_bytes, 0)) {
		segment = exchange_segment(writer, ring);
		if (!segment)
			return NULL;
	}
	*place = (struct cuf_event *)(segment + 1) + segment->used;
	return segment;
}

uint64_t cuf_ring_event(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_event *event)
{
	struct cuf_event *place = NULL;
	struct cuf_segment *segment = find_room(writer, ring, &place);
	uint64_t seq = __atomic_add_fetch(&cuf_recording.header->next_seq, 1, __ATOMIC_RELAXED);

	event->seq = seq;
	if (!segment)
		return seq;
	/* seq is the commit field: 0 while the rest is written */
	__atomic_store_n(&place->seq, 0, __ATOMIC_RELAXED);
	event->seq = 0;
	*place = *event;
	event->seq = seq;
	__atomic_store_n(&place->seq, seq, __ATOMIC_RELEASE);
	__atomic_store_n(&segment->used, segment->used + 1, __ATOMIC_RELEASE);
	return seq;
}

struct cuf_host_event *cuf_ring_host_exchange(struct cuf_writer *writer)
{
	return exchange_segment(writer, CUF_RING_HOST) ? writer->host_next : NULL;
}
