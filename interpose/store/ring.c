/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: who owns which, and appending to one's own. */
#include "interpose/store/ring.h"

#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/store/liveness.h"
#include "interpose/platform/options.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static const enum cuf_loss losses[CUF_RINGS] = { CUF_LOST_RING, CUF_LOST_HOST_RING, CUF_LOST_FRAMEWORK_RING };

static struct cuf_segment *segment_at(enum cuf_ring ring, uint32_t index)
{
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];
	return (struct cuf_segment *)(place->at + index * place->segment_bytes);
}

static uint32_t *slot_word(struct cuf_thread *slot, enum cuf_ring ring)
{
	uint32_t *const words[CUF_RINGS] = { &slot->segment, &slot->host_segment, &slot->framework_segment };
	return words[ring];
}

/* A slot's word: segment index + 1 in the low half, the slot's generation in the high half, so that a word read
 * before the slot changed hands is never mistaken for the new owner's. */
static uint32_t word_of(const struct cuf_thread *slot, uint32_t index)
{
	return (__atomic_load_n(&slot->generation, __ATOMIC_RELAXED) & 0xffff) << 16 | (index + 1);
}

/* s: the segment that the thread appends to from now on, or NULL. */
static void own(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_segment *s)
{
	writer->segments[ring] = s;
	if (ring != CUF_RING_HOST)
		return;
	writer->host_time_base_ns = 0; /* the first record is a TIME */
	writer->host_next = writer->host_end = NULL;
	if (s) {
		struct cuf_host_event *first = (struct cuf_host_event *)(s + 1);
		writer->host_next = first + s->used;
		writer->host_end = first + (cuf_recording.rings[ring].segment_bytes - sizeof *s) / sizeof *first;
	}
}

void cuf_ring_inherit(struct cuf_writer *writer)
{
	for (unsigned ring = 0; ring < CUF_RINGS; ring++) {
		uint32_t *word = slot_word(writer->slot, ring);
		uint32_t old = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) & 0xffff;
		own(writer, ring, NULL);
		if (!old)
			continue;
		own(writer, ring, segment_at(ring, old - 1));
		__atomic_store_n(word, word_of(writer->slot, old - 1), __ATOMIC_RELEASE);
	}
}

/* Takes the segment away from a dead thread. */
static bool reclaim(struct cuf_segment *s, enum cuf_ring ring, uint32_t index)
{
	struct cuf_thread *slot;
	uint32_t word, tid, owner = __atomic_load_n(&s->thread, __ATOMIC_RELAXED);
	if (owner >= cuf_recording.thread_count)
		return false;
	slot = &cuf_recording.threads[owner];
	word = __atomic_load_n(slot_word(slot, ring), __ATOMIC_ACQUIRE);
	tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
	if ((word & 0xffff) != index + 1 || !tid || cuf_thread_alive(tid))
		return false;
	__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE); /* pairs with its last leave */
	return __atomic_compare_exchange_n(slot_word(slot, ring), &word, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void give_up(struct cuf_writer *writer, enum cuf_ring ring)
{
	struct cuf_segment *s = writer->segments[ring];
	uint32_t *word = slot_word(writer->slot, ring);
	own(writer, ring, NULL);
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	if (s)
		__atomic_store_n(&s->owned, 0, __ATOMIC_RELEASE);
}

static struct cuf_segment *take_segment(struct cuf_writer *writer, enum cuf_ring ring)
{
	struct cuf_ring_counts counts = cuf_recording_ring_counts(ring);
	unsigned count = cuf_recording.rings[ring].segment_count;
	bool filled_one = ring == CUF_RING_HOST && writer->segments[ring] && writer->host_next == writer->host_end;
	give_up(writer, ring);
	for (unsigned tries = 0; tries < count; tries++) {
		uint64_t ticket = __atomic_add_fetch(counts.tickets, 1, __ATOMIC_RELAXED);
		uint32_t index = (uint32_t)((ticket - 1) % count), free_mark = 0, used;
		struct cuf_segment *s = segment_at(ring, index);
		if (!__atomic_compare_exchange_n(&s->owned, &free_mark, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) && !reclaim(s, ring, index))
			continue;
		used = __atomic_load_n(&s->used, __ATOMIC_ACQUIRE);
		if (used)
			__atomic_fetch_add(counts.overwritten, used, __ATOMIC_RELAXED);
		if (filled_one && ticket <= count) /* it writes much, and nobody wrote here yet */
			cuf_recording_populate(s, cuf_recording.rings[ring].segment_bytes);
		__atomic_store_n(&s->used, 0, __ATOMIC_RELEASE); /* a reader sees an empty segment before its records change */
		s->ticket = ticket;
		s->start_ns = cuf_now_ns();
		__atomic_store_n(&s->thread, writer->slot_index, __ATOMIC_RELAXED);
		s->tid = writer->tid;
		s->sample_mean_bytes = ring == CUF_RING_HOST && cuf_options.host == CUF_HOST_SAMPLED ? writer->sample_mean_bytes : 0;
		__atomic_store_n(slot_word(writer->slot, ring), word_of(writer->slot, index), __ATOMIC_RELEASE);
		own(writer, ring, s);
		return s;
	}
	cuf_count_dropped(losses[ring]);
	return NULL;
}

/* The thread's segment with room for one more event; *place is that one. */
static inline struct cuf_segment *room(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_event **place)
{
	struct cuf_segment *s = writer->segments[ring];
	if (__builtin_expect(!s || (s->used + 1) * sizeof **place + sizeof *s > cuf_recording.rings[ring].segment_bytes, 0)) {
		s = take_segment(writer, ring);
		if (!s)
			return NULL;
	}
	*place = (struct cuf_event *)(s + 1) + s->used;
	return s;
}

uint64_t cuf_ring_event(struct cuf_writer *writer, enum cuf_ring ring, struct cuf_event *event)
{
	struct cuf_event *e = NULL;
	struct cuf_segment *s = room(writer, ring, &e);
	uint64_t seq = __atomic_add_fetch(&cuf_recording.header->next_seq, 1, __ATOMIC_RELAXED);
	event->seq = seq;
	if (!s)
		return seq;
	__atomic_store_n(&e->seq, 0, __ATOMIC_RELAXED);
	event->seq = 0;
	*e = *event;
	event->seq = seq;
	__atomic_store_n(&e->seq, seq, __ATOMIC_RELEASE);
	__atomic_store_n(&s->used, s->used + 1, __ATOMIC_RELEASE);
	return seq;
}

struct cuf_host_event *cuf_ring_host_exchange(struct cuf_writer *writer)
{
	return take_segment(writer, CUF_RING_HOST) ? writer->host_next : NULL;
}
