/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's view of the recorder. Contract: cuf_thread_enter returns this thread's state with the guard
 * taken, or NULL (off, nested, no slot: counted); cuf_thread_leave gives the guard back. Between the two nothing of
 * libc that allocates may be called. There is no destructor: frees in late thread teardown still count, and a slot
 * is recycled when its thread is found dead.
 */
#ifndef CUF_THREAD_H
#define CUF_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/stack/stacks.h"
#include "interpose/store/ring.h"
#include "interpose/record/state.h"

/* One per slot, in private memory, reused by the slot's next thread. */
struct cuf_thread_state {
	struct cuf_writer writer;
	uint64_t host_now_ns;
	uint32_t host_tick_ms;           /* host_now_ns as ticks of the events, and as a birth time of blocks */
	uint32_t host_birth;
	uint32_t host_clock_countdown;
	uint64_t random;
	uint64_t sampled_from;           /* bytes of the current sampling interval */
	int64_t framework_countdown_bytes; /* to the next small framework block whose stack is taken */
	uint32_t operations;             /* on device blocks, to measure the cost of one in some */
	struct cuf_stack_scratch stack;
};

/* Few bytes of static TLS; initial-exec, because other models may call malloc on first use. */
struct cuf_tls {
	struct cuf_thread_state *thread;
	uint64_t generation;     /* of the recording `thread` belongs to; see state.h */
	int64_t countdown_bytes; /* to the next host sample */
	uintptr_t label_frame;
	uint16_t label;
	uint8_t guard;
	uint8_t driver_calls;    /* unrecorded while > 1: the driver calling itself */
	uint8_t role;            /* enum cuf_role of the blocks that come now */
};
extern __thread struct cuf_tls cuf_tls __attribute__((tls_model("initial-exec")));

/* The slow door: attaches the thread, waits out a hand-over, notices a fork. NULL: do not record. */
struct cuf_thread_state *cuf_thread_attach(void);
struct cuf_thread_state *cuf_thread_enter_slowly(void);

/*
 * Entering announces the thread (busy) and then looks at the gate again; a hand-over closes the gate and then waits for
 * busy slots. Each must see the other's store. The hand-over happens once in a process's life and entering millions of
 * times a second, so the hand-over pays for both: cuf_thread_fence_all has the kernel put a fence into every running
 * thread (membarrier). Where the kernel has none, each entering pays (cuf_thread_must_fence).
 */
extern bool cuf_thread_must_fence;
void cuf_thread_fence_prepare(void); /* when a recording begins */
bool cuf_thread_fence_all(void);     /* false: could not be done */

static inline void cuf_thread_announce(struct cuf_thread_state *t)
{
	if (__builtin_expect(cuf_thread_must_fence, 0))
		__atomic_exchange_n(&t->writer.slot->busy, 1, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&t->writer.slot->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline struct cuf_thread_state *cuf_thread_enter(void)
{
	struct cuf_thread_state *t = cuf_tls.thread;
	if (__builtin_expect(!cuf_tls.guard && cuf_tls.generation == __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE), 1)) {
		cuf_tls.guard = 1;
		cuf_thread_announce(t);
		if (__builtin_expect(cuf_tls.generation == __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE), 1))
			return t;
		__atomic_store_n(&t->writer.slot->busy, 0, __ATOMIC_RELEASE);
		cuf_tls.guard = 0;
	}
	return cuf_thread_enter_slowly();
}

static inline void cuf_thread_leave(struct cuf_thread_state *thread)
{
	__atomic_store_n(&thread->writer.slot->busy, 0, __ATOMIC_RELEASE);
	cuf_tls.guard = 0;
}

/* In a forked child: all slots are free again. */
void cuf_thread_fork(void);

#endif
