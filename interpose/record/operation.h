/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One operation on blocks: the thread enters the recorder, events are logged, the thread leaves.
 * Shared by the driver's calls (recorder.c) and the frameworks' reports (framework.c). Inline,
 * because both are paths that programs wait for.
 *
 * Contract: finish follows each begin that returned true, and puts errno back.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"
#include "interpose/incident/request.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/clock.h"
#include "interpose/process/thread.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"

/* A clock read is a tenth of an operation, so one operation in 16 is timed and counted 16 times. */
enum { CUF_COST_EVERY = 16 };

struct cuf_operation {
	struct cuf_thread_state *thread;
	uint64_t now_ns;
	uint32_t stack; /* of the caller, 0 none */
	uint16_t hook, label;
	int saved_errno;
};

/* What an event has beyond its block. */
struct cuf_event_extra {
	uint64_t addr;
	uint32_t alloc_stack, extra;
};

static inline bool cuf_operation_begin(struct cuf_operation *operation, unsigned hook,
				       unsigned label)
{
	operation->saved_errno = errno;
	operation->thread = cuf_thread_enter();
	if (!operation->thread)
		return false;
	operation->hook = (uint16_t)hook;
	operation->label = (uint16_t)label;
	operation->stack = 0;
	operation->now_ns = cuf_now_ns();
	return true;
}

static inline void cuf_operation_finish(struct cuf_operation *operation)
{
	struct cuf_thread_state *thread = operation->thread;
	cuf_timeline_tick(operation->now_ns);
	if (++thread->operations % CUF_COST_EVERY == 0) {
		uint64_t cost_ns = CUF_COST_EVERY * (cuf_now_ns() - operation->now_ns);
		__atomic_fetch_add(&cuf_recording.header->recorder_ns, cost_ns, __ATOMIC_RELAXED);
	}
	cuf_thread_leave(thread);
	errno = operation->saved_errno;
}

/* Appends an event and returns its sequence number. The event's stack is the operation's. */
static inline uint64_t cuf_operation_log(const struct cuf_operation *operation, enum cuf_ring ring,
					 unsigned op,
					 const struct cuf_block *block,
						struct cuf_event_extra extra)
{
	struct cuf_event event = {
		.time_ns = operation->now_ns,
		.addr = extra.addr,
		.bytes = block->bytes,
		.aux = block->aux,
		.stack = operation->stack,
		.alloc_stack = extra.alloc_stack,
		.tid = operation->thread->writer.tid,
		.extra = extra.extra,
		.hook = operation->hook,
		.label = operation->label,
		.op = (uint8_t)op,
		.kind = block->kind,
		.device = block->device,
		.flags = block->flags,
	};
	return cuf_ring_event(&operation->thread->writer, ring, &event);
}

/* A block that this operation allocates. */
static inline struct cuf_block cuf_operation_block(const struct cuf_operation *operation,
						   const struct cuf_request *request, uint64_t addr)
{
	return (struct cuf_block){
		.key = cuf_key(cuf_kind_space(request->kind), addr),
		.bytes = request->bytes,
		.aux = request->aux,
		.time_ns = operation->now_ns,
		.stack = operation->stack,
		.tid = operation->thread->writer.tid,
		.context = request->context,
		.references = 1,
		.hook = operation->hook,
		.label = operation->label,
		.kind = request->kind,
		.device = request->device,
		.flags = request->flags,
		.role = cuf_tls.role,
	};
}

/* How long a block lived, for the event of its end. */
static inline uint32_t cuf_operation_age_ms(const struct cuf_operation *operation,
					    const struct cuf_block *block)
{
	uint64_t ms = (operation->now_ns - block->time_ns) / 1000000;
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX - 1;
}

static inline void cuf_count(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}
