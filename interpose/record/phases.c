/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases, requests and marks of the program, as events. NVTX goes into the framework ring, the
 * program's own marks (cuflight.h) into the device ring. Neither may fill its ring faster than in a
 * minute, with half a ring at once: what is more is left out, beginnings with their ends, and
 * counted (header.phases_left_out).
 */
#include <errno.h>
#include "interpose/incident/open_phases.h"
#include "interpose/incident/phase_names.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/process/handover.h"
#include "interpose/process/thread.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/platform/laws.h"

#define FILL_NS 60000000000ull

/* when the ring would be full of what was admitted, had it been empty */
static uint64_t full_at_ns[CUF_RINGS];
static uint64_t last_id;

static void forget_phases(void)
{
	for (unsigned ring = 0; ring < CUF_RINGS; ring++)
		full_at_ns[ring] = 0;
	last_id = 0;
}
CUF_AT_FORK_CHILD(forget_phases);

/* One phase event that is being made. The thread is entered. */
struct phase {
	struct cuf_thread_state *thread;
	enum cuf_phase_source source;
	enum cuf_phase_op op;
	uint32_t name;
	uint64_t id;
	int saved_errno;
};

static bool enter(struct phase *phase)
{
	phase->saved_errno = errno;
	phase->thread = cuf_thread_enter();
	if (!phase->thread)
		errno = phase->saved_errno;
	return phase->thread != NULL;
}

static void leave(const struct phase *phase)
{
	cuf_thread_leave(phase->thread);
	errno = phase->saved_errno;
}

/* ---- events ---- */

static enum cuf_ring ring_of(enum cuf_phase_source source)
{
	return source == CUF_PHASE_NVTX ? CUF_RING_FRAMEWORK : CUF_RING_DEVICE;
}

/* The pace of the ring. The end of what was begun is always admitted. */
static bool admit(enum cuf_ring ring, uint64_t now_ns, bool always)
{
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];
	uint64_t events =
		place->segment_count * (place->segment_bytes / sizeof(struct cuf_event) - 1);
	uint64_t step_ns = FILL_NS / (events ? events : 1);
	uint64_t seen = __atomic_load_n(&full_at_ns[ring], __ATOMIC_RELAXED), from;
	do {
		from = seen > now_ns ? seen : now_ns;
		if (!always && from - now_ns > FILL_NS / 2)
			return false;
	} while (!__atomic_compare_exchange_n(&full_at_ns[ring], &seen, from + step_ns, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

static void count_left_out(void)
{
	__atomic_fetch_add(&cuf_recording.header->phases_left_out, 1, __ATOMIC_RELAXED);
}

/* Returns its sequence number; 0: left out. */
static uint64_t log_event(const struct phase *phase, bool always)
{
	enum cuf_ring ring = ring_of(phase->source);
	struct cuf_event event = {
		.addr = phase->name,
		.aux = phase->id,
		.tid = phase->thread->writer.tid,
		.extra = cuf_phase_extra(phase->op, phase->source),
		.op = CUF_OP_PHASE,
		.device = CUF_DEVICE_NONE,
	};
	if (!admit(ring, cuf_now_coarse_ns(), always)) {
		count_left_out();
		return 0;
	}
	event.time_ns = cuf_now_ns();
	return cuf_ring_event(&phase->thread->writer, ring, &event);
}

static uint32_t number_of(const struct cuf_phase_text *name)
{
	return cuf_phase_name(name->domain, name->domain_bytes, name->text, name->bytes);
}

/* ---- nested phases ---- */

static int push(struct phase *phase, const struct cuf_phase_text *name)
{
	struct cuf_phase_level level = { .stack = name->stack };
	if (cuf_phase_levels_are_full(phase->thread)) {
		count_left_out();
		return cuf_phase_levels_push(phase->thread, &level);
	}
	level.name = phase->name = number_of(name);
	level.is_written = log_event(phase, false) != 0;
	return cuf_phase_levels_push(phase->thread, &level);
}

static int pop(struct phase *phase, uint32_t stack)
{
	struct cuf_phase_level level;
	int depth = cuf_phase_levels_pop(phase->thread, stack, &level);
	if (level.is_written) {
		phase->name = level.name;
		log_event(phase, true);
	}
	return depth;
}

/* ---- ranges and requests ---- */

static enum cuf_open_table table_of(enum cuf_phase_op op)
{
	if (op == CUF_PHASE_REQUEST_BEGIN || op == CUF_PHASE_REQUEST_END)
		return CUF_OPEN_REQUESTS;
	return CUF_OPEN_RANGES;
}

/* What is left out is not among the open ones, so that its end is not written either. Host events
 * have a coarse clock: after the mark, those of this thread are on the right side of the range. */
static uint64_t begin_with_id(struct phase *phase)
{
	struct cuf_open_phase open = { .tid = phase->thread->writer.tid, .name = phase->name };
	if (!phase->id)
		phase->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	open.id = phase->id;
	open.seq = log_event(phase, false);
	if (open.seq)
		cuf_open_add(table_of(phase->op), phase->source, &open);
	cuf_host_mark_time(phase->thread);
	return phase->id;
}

static void end_with_id(struct phase *phase)
{
	bool was_open = cuf_open_take(table_of(phase->op), phase->source, phase->id, &phase->name);
	log_event(phase, was_open);
	cuf_host_mark_time(phase->thread);
}

/* ---- the door ---- */

int64_t cuf_phase_begin(enum cuf_phase_op op, enum cuf_phase_source source,
			const struct cuf_phase_text *name, uint64_t id)
{
	struct phase phase = { .source = source, .op = op, .id = id };
	int64_t result = 0;
	if (source == CUF_PHASE_PROGRAM && __builtin_expect(cuf_handover_is_pending(), 0))
		cuf_handover_to_file();
	if (!enter(&phase))
		return op == CUF_PHASE_PUSH ? -1 : (int64_t)id;
	if (op == CUF_PHASE_PUSH) {
		result = push(&phase, name);
	} else {
		phase.name = number_of(name);
		if (op == CUF_PHASE_MARK)
			log_event(&phase, false);
		else
			result = (int64_t)begin_with_id(&phase);
	}
	leave(&phase);
	return result;
}

int cuf_phase_end(enum cuf_phase_op op, enum cuf_phase_source source, uint64_t id)
{
	struct phase phase = { .source = source, .op = op };
	int result = 0;
	if (op == CUF_PHASE_POP) {
		if (!enter(&phase))
			return -1;
		result = pop(&phase, (uint32_t)id);
	} else {
		phase.id = id;
		if (!id || !enter(&phase))
			return 0;
		end_with_id(&phase);
	}
	leave(&phase);
	return result;
}
