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
#include "interpose/core/walker.h"

#define CUF_STACK_CACHE 1024u /* recently seen stacks of a thread, direct-mapped by hash */

/* One per slot, in private memory, reused by the slot's next thread. */
struct cuf_thread_state {
	struct cuf_thread *slot;
	unsigned index;
	uint32_t tid;
	struct cuf_segment *segments[2]; /* 0 device, 1 host; NULL none */
	uint64_t host_time_base_ns;      /* of the last TIME record */
	uint64_t host_now_ns;
	uint32_t host_clock_countdown;
	uint64_t random;
	uint64_t sampled_from;           /* bytes of the current sampling interval */
	uint32_t operations;             /* on device blocks, to measure the cost of one in some */
	struct cuf_walker walker;
	uint64_t frames[256];
	struct { uint64_t hash; uint32_t id; } stack_cache[CUF_STACK_CACHE];
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
};
extern __thread struct cuf_tls cuf_tls __attribute__((tls_model("initial-exec")));

/* The slow door: attaches the thread, waits out a hand-over, notices a fork. NULL: do not record. */
struct cuf_thread_state *cuf_thread_attach(void);

struct cuf_thread_state *cuf_thread_enter(void);
void cuf_thread_leave(struct cuf_thread_state *thread);

/* 0 when the thread of this id is gone. */
bool cuf_thread_alive(uint32_t tid);

/* In a forked child: all slots are free again. */
void cuf_thread_fork(void);

#endif
