/* SPDX-License-Identifier: Apache-2.0 */
/* Driver calls: assembles events, appends them, and keeps the ledger and the totals in step. */
#include "interpose/record/recorder.h"

#include <errno.h>
#include "interpose/incident/device.h"
#include "interpose/incident/incident.h"
#include "interpose/incident/live_sums.h"
#include "interpose/incident/timeline.h"
#include "interpose/process/thread.h"
#include "interpose/record/operation.h"
#include "interpose/stack/stacks.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* ---- calls ---- */

/* Forgets calls that the thread left without their end. */
static void forget_calls_left(uintptr_t frame)
{
	if (cuf_tls.driver_calls && cuf_frame_was_left(cuf_tls.call_frame, frame))
		cuf_tls.driver_calls = 0;
	if (cuf_tls.label && cuf_frame_was_left(cuf_tls.label_frame, frame))
		cuf_tls.label = 0;
	if (!cuf_tls.driver_calls)
		cuf_tls.call_frame = frame;
}

bool cuf_call_begin(struct cuf_call *call, unsigned hook, void *frame)
{
	forget_calls_left((uintptr_t)frame);
	call->saved_errno = errno;
	call->thread = NULL;
	call->hook = (uint16_t)hook;
	call->label = cuf_tls.label;
	call->stack = CUF_UNKNOWN32;
	call->frame = cuf_tls.label ? cuf_tls.label_frame : (uintptr_t)frame;
	if (cuf_tls.driver_calls < UINT8_MAX)
		cuf_tls.driver_calls++;
	if (cuf_tls.driver_calls == 1) {
		struct cuf_thread_state *thread;
		/*
		 * an attached thread needs only this look at the gate; each operation enters by
		 * itself
		 */
		if (__builtin_expect(cuf_thread_is_attached(), 1)) {
			call->thread = cuf_tls.thread;
		} else if ((thread = cuf_thread_enter())) {
			call->thread = thread;
			cuf_thread_leave(thread);
		}
	}
	errno = call->saved_errno;
	return call->thread != NULL;
}

/* Must follow every cuf_call_begin, also one that returned false. */
void cuf_call_end(void)
{
	if (cuf_tls.driver_calls)
		cuf_tls.driver_calls--;
}

/* ---- one operation inside a call ---- */

/* The call's stack is taken once, by its first operation. */
static bool begin_operation(struct cuf_operation *operation, struct cuf_call *call)
{
	if (!call->thread || !cuf_operation_begin(operation, call->hook, call->label))
		return false;
	if (call->stack == CUF_UNKNOWN32)
		call->stack = cuf_stack_capture_call(&operation->thread->stack, call->frame);
	operation->stack = call->stack;
	return true;
}

static uint64_t log_event(struct cuf_operation *operation, unsigned op,
			  const struct cuf_block *block,
			  struct cuf_event_extra extra)
{
	return cuf_operation_log(operation, CUF_RING_DEVICE, op, block, extra);
}

/* The ledger holds a block's role only while the block lives, so it is logged too. */
static void log_role(struct cuf_operation *operation, const struct cuf_block *block, uint64_t addr)
{
	struct cuf_block event = *block;
	event.aux = 0;
	cuf_operation_log(operation, CUF_RING_FRAMEWORK, CUF_OP_ROLE, &event,
			  (struct cuf_event_extra){ .addr = addr, .extra = block->role });
}

/* Of a block that was in the ledger. */
static void count_end(const struct cuf_operation *operation, const struct cuf_block *block)
{
	cuf_live_sums_count(block, -1);
	cuf_device_count(block, -1, operation->now_ns);
}

/* A block over a live one: a free was missed. The old one ends here. Of one without a place in the
 * ledger the end would not be known, so the sums are without it. */
static void hold(const struct cuf_operation *operation, const struct cuf_block *block)
{
	struct cuf_block old;
	const bool is_held = cuf_ledger_add(block, &old);
	if (old.key) {
		count_end(operation, &old);
		cuf_count(&cuf_recording.header->replaced, 1);
	}
	if (is_held)
		cuf_live_sums_count(block, 1);
	cuf_device_count(block, 1, operation->now_ns);
}

static void add_block(struct cuf_operation *operation, struct cuf_block *block, uint64_t addr)
{
	block->seq = log_event(operation, CUF_OP_ALLOC, block,
			       (struct cuf_event_extra){ .addr = addr,
							.alloc_stack = block->stack });
	hold(operation, block);
}

static void log_free(struct cuf_operation *operation, const struct cuf_block *block, unsigned flags)
{
	struct cuf_block logged = *block;
	const struct cuf_event_extra extra = {
		.addr = cuf_key_addr(block->key),
		.alloc_stack = block->stack,
		.extra = cuf_operation_age_ms(operation, block),
	};
	logged.flags |= (uint8_t)flags;
	log_event(operation, CUF_OP_FREE, &logged, extra);
	count_end(operation, block);
}

/* ---- blocks ---- */

/* An allocation that succeeded may resolve an earlier failure, so the last incident is checked
 * here. */
void cuf_block_alloc(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct cuf_operation operation;
	struct cuf_block block;
	if (!begin_operation(&operation, call))
		return;
	block = cuf_operation_block(&operation, request, addr);
	add_block(&operation, &block, addr);
	if (__builtin_expect(block.role, 0))
		log_role(&operation, &block, addr);
	cuf_incident_success(operation.thread->writer.tid, request, block.seq, operation.now_ns);
	cuf_operation_finish(&operation);
}

/* A free of an address that the ledger lacks is an event, too: it shows memory that was allocated
 * before the recorder started. */
bool cuf_block_free(struct cuf_call *call, unsigned space, uint64_t addr, struct cuf_block *block)
{
	struct cuf_operation operation;
	bool is_known;
	*block = (struct cuf_block){ 0 };
	if (!begin_operation(&operation, call))
		return false;
	is_known = cuf_ledger_take(cuf_key(space, addr), block);
	if (is_known) {
		log_free(&operation, block, 0);
	} else {
		const struct cuf_block unknown = { .device = CUF_DEVICE_NONE };
		log_event(&operation, CUF_OP_UNKNOWN_FREE, &unknown,
			  (struct cuf_event_extra){ .addr = addr });
		cuf_count(&cuf_recording.header->unknown_frees, 1);
	}
	cuf_operation_finish(&operation);
	return is_known;
}

/* The driver refused a free. The block returns with its stack and its birth, and the free is
 * counted as undone. */
void cuf_block_restore(struct cuf_call *call, const struct cuf_block *block)
{
	struct cuf_operation operation;
	struct cuf_event_extra extra;
	if (!block->key || !begin_operation(&operation, call))
		return;
	extra = (struct cuf_event_extra){
		.addr = cuf_key_addr(block->key),
		.alloc_stack = block->stack,
		.extra = cuf_operation_age_ms(&operation, block),
	};
	log_event(&operation, CUF_OP_RESTORE, block, extra);
	hold(&operation, block);
	cuf_count(&cuf_recording.header->undone_frees, 1);
	cuf_operation_finish(&operation);
}

/* block may be NULL. set_flags are added to the entry. */
bool cuf_block_find(unsigned space, uint64_t addr, unsigned set_flags, struct cuf_block *block)
{
	struct cuf_block ignored;
	uint64_t key = cuf_key(space, addr);
	int no_references = 0, no_maps = 0;

	if (!cuf_recording.base)
		return false;
	if (!block)
		block = &ignored;
	if (set_flags)
		return cuf_ledger_add_refs(key, &no_references, &no_maps, set_flags, block);
	return cuf_ledger_find(key, block);
}

/* Returns 1 when the block died with its last reference and map, 0 when it lives, -1 when it is
 * unknown. *block has the counts from before the call. */
int cuf_block_add_refs(struct cuf_call *call, unsigned space, uint64_t addr, int references,
		       int maps,
		       struct cuf_block *block)
{
	struct cuf_operation operation;
	struct cuf_block after, taken;
	uint64_t key = cuf_key(space, addr);
	int ended = 0;
	*block = (struct cuf_block){ 0 };
	if (!begin_operation(&operation, call))
		return -1;
	if (!cuf_ledger_add_refs(key, &references, &maps, 0, &after)) {
		ended = -1;
	} else {
		const struct cuf_event_extra extra = {
			.addr = addr,
			.alloc_stack = after.stack,
			.extra = (uint32_t)after.maps << 16 | after.references,
		};
		*block = after;
		block->references = (uint16_t)(after.references - references);
		block->maps = (uint16_t)(after.maps - maps);
		log_event(&operation, CUF_OP_REFERENCE, &after, extra);
		if (!after.references && !after.maps && cuf_ledger_take(key, &taken)) {
			log_free(&operation, &taken, 0);
			ended = 1;
		}
	}
	cuf_operation_finish(&operation);
	return ended;
}

/* ---- resets, levels, notes ---- */

struct reset {
	struct cuf_operation *operation;
	const struct cuf_request *scope;
	uint64_t seq;
};

/* A block without a context belongs to all of the device's. */
static bool is_in_scope(const struct cuf_block *block, const struct reset *reset)
{
	const struct cuf_request *scope = reset->scope;
	if (block->seq > reset->seq || (block->flags & scope->flags) != scope->flags)
		return false;
	if (scope->device != CUF_DEVICE_NONE && block->device != scope->device)
		return false;
	return !scope->context || !block->context || block->context == scope->context;
}

static void reset_block(const struct cuf_block *block, void *context)
{
	const struct reset *reset = context;
	struct cuf_block taken;
	if (is_in_scope(block, reset) && cuf_ledger_take(block->key, &taken))
		log_free(reset->operation, &taken, CUF_EVENT_BULK);
}

void cuf_reset_apply(struct cuf_call *call, const struct cuf_request *scope, uint64_t seq)
{
	struct cuf_operation operation;
	struct reset reset = { &operation, scope, seq };
	/*
	 * after the end began, releases are the exit handlers' work: the ledger keeps what the
	 * program held
	 */
	if (!seq || !cuf_recording.header || cuf_recording.header->end_kind)
		return;
	if (!begin_operation(&operation, call))
		return;
	cuf_ledger_each(reset_block, &reset);
	cuf_operation_finish(&operation);
}

/* A level is a pseudo-block whose size changes: it is freed and allocated again. Nothing is logged
 * when it is the same, and a level of 0 bytes has no block. */
void cuf_level_set(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct cuf_operation operation;
	struct cuf_block old, block;
	unsigned space = cuf_kind_space(request->kind);
	bool is_known = cuf_block_find(space, addr, 0, &old);
	if (is_known && old.bytes == request->bytes && old.aux == request->aux)
		return;
	if ((!is_known && !request->bytes) || !begin_operation(&operation, call))
		return;
	if (is_known && cuf_ledger_take(cuf_key(space, addr), &old))
		log_free(&operation, &old, 0);
	if (request->bytes) {
		block = cuf_operation_block(&operation, request, addr);
		add_block(&operation, &block, addr);
	}
	cuf_operation_finish(&operation);
}

uint64_t cuf_event_note(struct cuf_call *call, unsigned op, const struct cuf_request *request,
			uint64_t addr,
			uint32_t extra)
{
	struct cuf_operation operation;
	struct cuf_block block;
	uint64_t seq;
	if (!begin_operation(&operation, call))
		return 0;
	block = cuf_operation_block(&operation, request, addr);
	seq = log_event(&operation, op, &block, (struct cuf_event_extra){ .addr = addr,
									 .extra = extra });
	cuf_operation_finish(&operation);
	return seq;
}

/* ---- failures ---- */

/* The event is logged between opening and publishing the incident, because the incident contains
 * its sequence number. */
uint64_t cuf_request_failed(struct cuf_call *call, const struct cuf_request *request,
			    uint32_t result,
			    const struct cuf_driver_view *view)
{
	struct cuf_operation operation;
	struct cuf_incident *incident;
	struct cuf_block block;
	uint64_t number = 0;
	if (!begin_operation(&operation, call))
		return 0;
	block = cuf_operation_block(&operation, request, 0);
	incident = cuf_incident_open(&block, result, request->unsized, view);
	if (incident) {
		number = cuf_incident_number(incident);
		incident->seq = log_event(&operation, CUF_OP_FAIL, &block,
					  (struct cuf_event_extra){ .addr = number,
								   .extra = result });
		cuf_incident_publish(incident);
	}
	cuf_timeline_sample(operation.now_ns);
	cuf_operation_finish(&operation);
	return number;
}
