/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread inside the recorder. cuf_thread_enter returns the thread's state with the
 * guard taken, or NULL when nothing may be recorded (off, nested, no slot: counted).
 * cuf_thread_leave releases the guard.
 *
 * Contract: between enter and leave nothing of libc that allocates may be called. There is no
 * thread-exit hook: frees in late thread teardown still count, and a slot is recycled when its
 * thread is found dead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/process/gate.h"
#include "interpose/stack/stacks.h"
#include "interpose/store/ring.h"

/* One per slot, in private memory, reused by the slot's next thread. */
struct cuf_thread_state {
	struct cuf_writer writer;
	uint64_t host_now_ns;              /* the coarse clock of the thread's host events */
	uint64_t looked_at_bytes;          /* of its slot, at its last look at the total */
	uint32_t host_tick_ms;             /* host_now_ns as ticks of the events */
	uint32_t host_birth;               /* host_now_ns as a birth time of blocks */
	uint32_t host_clock_countdown;     /* full mode: events to the next look at the clock */
	uint64_t random;                   /* of the samplers */
	uint64_t sampled_from;             /* bytes of the current sampling interval */
	/* to the next small framework block whose stack is taken */
	int64_t framework_countdown_bytes;
	/* one in some is timed, to report what the recorder costs */
	uint32_t operations;
	struct cuf_stack_scratch stack;
};

/*
 * The slow path of entering asks this function for the generation to record under. It waits for the
 * end of a hand-over and begins a forked child's own recording; 0: do not record. Set once, before
 * the gate opens.
 */
typedef uint64_t cuf_thread_admit_fn(void);
void cuf_thread_admit_with(cuf_thread_admit_fn *admit);

/* Marks the slots of threads that are gone, at the end of the process: a history of its memory is
 * played again with the threads that it had. A system call a thread. */
void cuf_threads_mark_ended(void);

/* A request of the calling thread was refused: what it lacks for a stack comes from the spare. */
void cuf_thread_may_take_spare(bool may);

/* The slow path of cuf_thread_enter. */
struct cuf_thread_state *cuf_thread_enter_slow(void);

static inline void cuf_thread_announce(struct cuf_thread_state *thread)
{
	if (__builtin_expect(cuf_gate_must_fence, 0))
		__atomic_exchange_n(&thread->writer.slot->busy, 1, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&thread->writer.slot->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline struct cuf_thread_state *cuf_thread_enter(void)
{
	struct cuf_thread_state *thread = cuf_tls.thread;
	if (__builtin_expect(!cuf_tls.guard && cuf_thread_is_attached(), 1)) {
		cuf_tls.guard = 1;
		cuf_thread_announce(thread);
		if (__builtin_expect(cuf_thread_is_attached(), 1))
			return thread;
		__atomic_store_n(&thread->writer.slot->busy, 0, __ATOMIC_RELEASE);
		cuf_tls.guard = 0;
	}
	return cuf_thread_enter_slow();
}

static inline void cuf_thread_leave(struct cuf_thread_state *thread)
{
	__atomic_store_n(&thread->writer.slot->busy, 0, __ATOMIC_RELEASE);
	cuf_tls.guard = 0;
}
