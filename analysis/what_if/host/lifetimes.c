/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the stream. The first one counts for each address, so that what was live before
 * the first event is known. The second one pairs. Each thread's events are in order. Among threads
 * the order is known only to a step of the coarse clock, which each reads once in some events. In
 * that time a thread goes on until an event of it is not legal: the event of another thread that
 * makes it legal comes first. To alternate instead would free blocks as soon as they were made.
 */
#include "analysis/what_if/host/lifetimes.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/sort.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/events.h"
#include "analysis/recording/host_means.h"

#define NO_BLOCK UINT32_MAX
/* Events that wait; with more, events were lost, and the oldest one waits for what never comes. */
enum {
	WAITING_MOST = 2 << 20,
	CLOCK_NS = 4000000 /* the coarse clock's step, at the 250 Hz of most kernels */
};

/* What is known of an address. */
struct place {
	uint64_t addr, bytes, mean_bytes, time_ns;
	uint32_t block;           /* NO_BLOCK: none, or not live */
	uint32_t stack;
	int32_t surplus;          /* allocations less frees, and less what is live at the end */
	bool is_live;
};

/* A block that was live before the first step. */
struct begun {
	uint64_t birth_ns, addr, bytes, mean_bytes;
	uint32_t block, stack;
};

/* The events of a thread that wait, and a realloc whose second half is yet to come. */
struct lane {
	struct host_event *events;
	size_t first, count, room;
	uint64_t resized_addr;
	uint32_t resized;         /* its block; NO_BLOCK */
};

struct pairing {
	struct lifetimes *out;
	const struct reader *reader;
	struct hash_index index, thread_index;
	struct place *places;
	size_t place_count, place_room;
	struct begun *begun;
	size_t begun_count, begun_room;
	struct lane *lanes;       /* by number of thread */
	size_t lane_count;
	size_t waiting;           /* events in lanes */
	size_t running;           /* the lane that went on last */
	uint64_t until_ns;        /* of events up to here, the order among threads is unknown */
	uint64_t skip;            /* events that only change what is live */
};

static struct place *place_at(struct pairing *pairing, uint64_t addr)
{
	uint32_t *number = hash_index_place(&pairing->index, addr);

	if (!*number) {
		xalloc_grow(&pairing->places, pairing->place_count, &pairing->place_room,
			    sizeof *pairing->places);
		pairing->places[pairing->place_count] =
			(struct place){ .addr = addr, .block = NO_BLOCK };
		*number = (uint32_t)++pairing->place_count;
	}
	return &pairing->places[*number - 1];
}

/* Threads beyond the most that a player has share numbers. */
static uint16_t thread_number(struct pairing *pairing, uint32_t tid)
{
	uint32_t *number = hash_index_place(&pairing->thread_index, tid);
	struct lifetimes *out = pairing->out;

	if (!*number) {
		xalloc_grow(&out->tids, out->thread_count, &out->thread_room, sizeof *out->tids);
		out->tids[out->thread_count] = tid;
		*number = (uint32_t)++out->thread_count;
	}
	if (*number <= PLAY_THREADS_MAX)
		return (uint16_t)(*number - 1);
	return (uint16_t)(1 + (*number - 1) % (PLAY_THREADS_MAX - 1));
}

static struct lane *lane_of(struct pairing *pairing, uint16_t thread)
{
	while (pairing->lane_count <= thread) {
		pairing->lanes = xalloc_resize(pairing->lanes, pairing->lane_count + 1,
					       sizeof *pairing->lanes);
		pairing->lanes[pairing->lane_count++] = (struct lane){ .resized = NO_BLOCK };
	}
	return &pairing->lanes[thread];
}

static struct timed_step *add_step(struct pairing *pairing, const struct host_event *event,
				   enum play_op op, uint32_t block, uint16_t thread)
{
	struct lifetimes *out = pairing->out;

	xalloc_grow(&out->steps, out->count, &out->room, sizeof *out->steps);
	out->steps[out->count] = (struct timed_step){
		.step = { event->bytes, block, thread, (uint8_t)op, 0 },
		.time_ns = event->time_ns,
		.mean_bytes = event->sample_mean_bytes,
		.stack = event->stack,
	};
	return &out->steps[out->count++];
}

static enum play_op op_of(unsigned op)
{
	switch (op) {
	case CUF_HOST_ZEROED: return PLAY_ZEROED;
	case CUF_HOST_ALIGNED: return PLAY_ALIGNED;
	default: return PLAY_TAKE;
	}
}

/* The alignment was not recorded: what the address shows, without what is chance. */
static uint8_t align_shift(uint64_t addr)
{
	if (!(addr % 4096))
		return 12;
	return addr % 64 ? 5 : 6;
}

static void note_live(struct place *place, const struct host_event *event, uint32_t block)
{
	place->is_live = true;
	place->block = block;
	place->bytes = event->bytes;
	place->mean_bytes = event->sample_mean_bytes;
	place->time_ns = event->time_ns;
	place->stack = event->stack;
}

static uint32_t begin_before(struct pairing *pairing, uint64_t birth_ns, uint64_t addr,
			     uint64_t bytes, uint64_t mean_bytes, uint32_t stack)
{
	xalloc_grow(&pairing->begun, pairing->begun_count, &pairing->begun_room,
		    sizeof *pairing->begun);
	pairing->begun[pairing->begun_count++] = (struct begun){
		birth_ns, addr, bytes, mean_bytes, pairing->out->block_count, stack
	};
	return pairing->out->block_count++;
}

/* ---- events that may happen now ---- */

static void allocated(struct pairing *pairing, const struct host_event *event, uint16_t thread)
{
	struct lane *lane = lane_of(pairing, thread);
	uint32_t block = lane->resized;

	if (event->op == CUF_HOST_RESIZED && block != NO_BLOCK) {
		lane->resized = NO_BLOCK;
		add_step(pairing, event, PLAY_RESIZE, block, thread);
	} else {
		block = pairing->out->block_count++;
		add_step(pairing, event, op_of(event->op), block, thread)->step.align_shift =
			align_shift(event->addr);
	}
	note_live(place_at(pairing, event->addr), event, block);
}

static void freed(struct pairing *pairing, const struct host_event *event, uint16_t thread)
{
	struct place *place = place_at(pairing, event->addr);
	struct lane *lane = lane_of(pairing, thread);
	uint32_t block = place->block;

	place->is_live = false;
	place->block = NO_BLOCK;
	if (block == NO_BLOCK)
		return; /* its allocation was lost */
	if (event->op == CUF_HOST_FREE_RESIZE && !pairing->out->sampled) {
		lane->resized = block;
		lane->resized_addr = event->addr;
	} else {
		add_step(pairing, event, PLAY_FREE, block, thread);
	}
}

/* A realloc without a second half was a free, unless it is undone. */
static void end_resize(struct pairing *pairing, const struct host_event *event, uint16_t thread)
{
	struct lane *lane = lane_of(pairing, thread);
	uint32_t block = lane->resized;

	if (block == NO_BLOCK || event->op == CUF_HOST_RESIZED)
		return;
	lane->resized = NO_BLOCK;
	if (event->op == CUF_HOST_RESTORE && event->addr == lane->resized_addr)
		note_live(place_at(pairing, event->addr), event, block);
	else
		add_step(pairing, event, PLAY_FREE, block, thread);
}

/* The events before the steps were only looked at; what they left live begins the history. */
static void begin_with_live(struct pairing *pairing)
{
	for (size_t i = 0; i < pairing->place_count; i++) {
		struct place *place = &pairing->places[i];

		if (place->is_live && place->block == NO_BLOCK)
			place->block = begin_before(pairing, place->time_ns, place->addr,
						    place->bytes, place->mean_bytes, place->stack);
	}
}

static void apply(struct pairing *pairing, const struct host_event *event)
{
	uint16_t thread = thread_number(pairing, event->tid);
	bool is_alloc = host_event_sign(event->op) > 0;

	if (pairing->skip) {
		note_live(place_at(pairing, event->addr), event, NO_BLOCK);
		place_at(pairing, event->addr)->is_live = is_alloc;
		if (!--pairing->skip)
			begin_with_live(pairing);
		return;
	}
	end_resize(pairing, event, thread);
	if (event->op == CUF_HOST_RESTORE)
		place_at(pairing, event->addr)->is_live = true;
	else if (is_alloc)
		allocated(pairing, event, thread);
	else
		freed(pairing, event, thread);
}

/* ---- the order among threads ---- */

static bool is_legal(struct pairing *pairing, const struct host_event *event)
{
	return place_at(pairing, event->addr)->is_live != (host_event_sign(event->op) > 0);
}

static void wait_in(struct pairing *pairing, struct lane *lane, const struct host_event *event)
{
	if (lane->first && lane->first + lane->count == lane->room) {
		memmove(lane->events, lane->events + lane->first,
			lane->count * sizeof *lane->events);
		lane->first = 0;
	}
	xalloc_grow(&lane->events, lane->first + lane->count, &lane->room, sizeof *lane->events);
	lane->events[lane->first + lane->count++] = *event;
	pairing->waiting++;
}

static void apply_first(struct pairing *pairing, struct lane *lane)
{
	struct host_event event = lane->events[lane->first++];

	if (!--lane->count)
		lane->first = 0;
	pairing->waiting--;
	apply(pairing, &event);
}

static bool run_lane(struct pairing *pairing, struct lane *lane)
{
	bool any = false;

	while (lane->count && is_legal(pairing, &lane->events[lane->first])) {
		apply_first(pairing, lane);
		any = true;
	}
	return any;
}

/* Whatever may go on goes on, first the thread that ran last; each event may make others legal. */
static void run(struct pairing *pairing)
{
	bool again = true;

	while (again && pairing->waiting) {
		size_t first = pairing->running;

		again = false;
		for (size_t i = 0; i < pairing->lane_count; i++) {
			size_t lane = (first + i) % pairing->lane_count;

			if (!run_lane(pairing, &pairing->lanes[lane]))
				continue;
			pairing->running = lane;
			again = true;
		}
	}
}

/* Events were lost: what has waited longest goes on all the same. */
static void force(struct pairing *pairing)
{
	struct lane *oldest = NULL;

	for (size_t i = 0; i < pairing->lane_count; i++) {
		struct lane *lane = &pairing->lanes[i];

		if (lane->count && (!oldest || lane->events[lane->first].time_ns <
						       oldest->events[oldest->first].time_ns))
			oldest = lane;
	}
	apply_first(pairing, oldest);
	run(pairing);
}

static void pair_event(struct pairing *pairing, const struct host_event *event)
{
	if (event->time_ns > pairing->until_ns) {
		run(pairing);
		pairing->until_ns = event->time_ns + CLOCK_NS;
	}
	wait_in(pairing, lane_of(pairing, thread_number(pairing, event->tid)), event);
	if (pairing->waiting > WAITING_MOST)
		force(pairing);
}

/* ---- the passes ---- */

/* Frees of blocks that are older than the recorder have no size. */
static bool is_malloc(const struct host_event *event)
{
	bool has_block = host_event_sign(event->op) > 0 || event->bytes;

	return event->op != CUF_HOST_MMAP && event->op != CUF_HOST_MUNMAP && has_block &&
	       host_event_sign(event->op) && !cuf_address_is_map(event->addr, event->bytes) &&
	       !cuf_address_is_python(event->addr, event->bytes);
}

/* The first pass. Returns the number of events. */
static uint64_t count_events(struct pairing *pairing)
{
	struct host_stream *stream = host_stream_new(pairing->reader);
	struct host_event event;
	uint64_t count = 0;

	while (host_stream_next(stream, &event)) {
		struct place *place;

		if (!is_malloc(&event))
			continue;
		place = place_at(pairing, event.addr);
		place->surplus += host_event_sign(event.op);
		if (!place->bytes && host_event_sign(event.op) < 0) {
			note_live(place, &event, NO_BLOCK);
			place->is_live = false;
		}
		count++;
	}
	host_stream_free(stream);
	return count;
}

/* What is live at the end either has its allocation in the stream, or was live before it. */
static void count_ledger(struct pairing *pairing, const struct host_means *means)
{
	const struct reader *reader = pairing->reader;

	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_HOST_LEDGER); i++) {
		struct cuf_host_block block;
		uint64_t addr, bytes;
		uint32_t birth, number;

		memcpy(&block, reader_at(reader, CUF_SEC_HOST_LEDGER, i), sizeof block);
		addr = cuf_host_addr(block.word0);
		bytes = cuf_host_bytes(block.word1);
		birth = cuf_host_birth(block.word0);
		if (!addr || cuf_address_is_map(addr, bytes) || cuf_address_is_python(addr, bytes))
			continue;
		number = hash_index_find(&pairing->index, addr);
		if (number)
			pairing->places[number - 1].surplus--;
		else
			begin_before(pairing,
				     reader->header.start_ns + cuf_birth_ms(birth) * 1000000u,
				     addr, bytes, host_means_at(means, birth),
				     cuf_host_stack(block.word1));
	}
}

/* One more free than allocations: the address had a block before the first event. */
static void begin_with_freed(struct pairing *pairing)
{
	for (size_t i = 0; i < pairing->place_count; i++) {
		struct place *place = &pairing->places[i];

		if (place->surplus >= 0)
			continue;
		place->is_live = true;
		if (!pairing->skip)
			place->block = begin_before(pairing, 0, place->addr, place->bytes,
						    place->mean_bytes, place->stack);
	}
}

/* Steps that allocate what was live before, in order of birth, in front of all others. */
static void put_begun_in_front(struct pairing *pairing)
{
	struct lifetimes *out = pairing->out;
	size_t count = 0;
	struct timed_step *all;

	sort_by_number(pairing->begun, pairing->begun_count, sizeof *pairing->begun,
		       offsetof(struct begun, addr));
	sort_by_number(pairing->begun, pairing->begun_count, sizeof *pairing->begun,
		       offsetof(struct begun, birth_ns));
	all = xalloc_zeroed(pairing->begun_count + out->count + 1, sizeof *all);
	for (size_t i = 0; i < pairing->begun_count; i++) {
		const struct begun *begun = &pairing->begun[i];

		if (begun->block == NO_BLOCK)
			continue;
		all[count++] = (struct timed_step){
			.step = { begun->bytes, begun->block, 0, PLAY_TAKE, 0 },
			.time_ns = out->count ? out->steps[0].time_ns : 0,
			.mean_bytes = begun->mean_bytes,
			.stack = begun->stack,
		};
	}
	out->begun_count = count;
	if (out->count)
		memcpy(all + count, out->steps, out->count * sizeof *all);
	free(out->steps);
	out->steps = all;
	out->count += count;
	out->room = pairing->begun_count + out->count + 1;
}

static void pair_all(struct pairing *pairing)
{
	struct host_stream *stream = host_stream_new(pairing->reader);
	struct host_event event = { 0 };

	while (host_stream_next(stream, &event))
		if (is_malloc(&event))
			pair_event(pairing, &event);
	run(pairing);
	while (pairing->waiting)
		force(pairing);
	event.op = CUF_HOST_NONE; /* ends every realloc that has no second half */
	for (size_t i = 0; i < pairing->lane_count; i++)
		end_resize(pairing, &event, (uint16_t)i);
	host_stream_free(stream);
}

void lifetimes_read(struct lifetimes *out, const struct reader *reader, const struct meta *meta,
		    size_t most)
{
	struct pairing pairing = { .out = out, .reader = reader };
	struct host_means means = host_means_of(reader, meta);
	uint64_t count;

	*out = (struct lifetimes){ .sampled = host_means_most(&means) > 0 };
	hash_index_init(&pairing.index, 1024);
	hash_index_init(&pairing.thread_index, 16);
	thread_number(&pairing, reader->header.pid); /* the main thread is number 0 */
	count = count_events(&pairing);
	pairing.skip = count > most ? count - most : 0;
	count_ledger(&pairing, &means);
	begin_with_freed(&pairing);
	pair_all(&pairing);
	put_begun_in_front(&pairing);
	hash_index_fini(&pairing.index);
	hash_index_fini(&pairing.thread_index);
	for (size_t i = 0; i < pairing.lane_count; i++)
		free(pairing.lanes[i].events);
	free(pairing.lanes);
	free(pairing.places);
	free(pairing.begun);
}

void lifetimes_fini(struct lifetimes *lifetimes)
{
	free(lifetimes->steps);
	free(lifetimes->tids);
	*lifetimes = (struct lifetimes){ 0 };
}
